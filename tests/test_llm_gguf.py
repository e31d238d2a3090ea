"""GGUF files, against the gguf package, which writes them here, and transformers, which reads them too."""

import struct

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from jaxscope.agents.llm.gguf import GgufFile
from jaxscope.agents.llm.gguf_blocks import TYPES
from jaxscope.agents.llm.gguf_weights import GgufWeights, llama3_factors
from tests import refusals

#: Where blocks of a type have float16 numbers, which random bytes would make infinite.
FLOATS = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0]}
FLOATS |= {"Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}

LLAMA = {
    "block_count": 2,
    "context_length": 128,
    "embedding_length": 16,
    "feed_forward_length": 24,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "rope.freq_base": 5000.0,
    "attention.layer_norm_rms_epsilon": 1e-5,
}


def write(path, architecture="llama", settings=None, tensors=None, metadata=None):
    """A GGUF file; `tensors` are arrays, or pairs of bytes [rows, bytes] and a type's name."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_vocab_size(8)
    for key, value in (settings or {}).items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}
        add[type(value)](f"{architecture}.{key}", value)
    for key, value, kind, inner in metadata or []:
        writer.add_key_value(key, value, kind, inner)
    for name, tensor in (tensors or {}).items():
        if isinstance(tensor, tuple):
            writer.add_tensor(name, tensor[0], raw_dtype=gguf.GGMLQuantizationType[tensor[1]])
        else:
            writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def random_blocks(kind: str, rows: int, blocks: int) -> np.ndarray:
    """Bytes of random blocks, uint8 [rows, bytes]."""
    rng = np.random.default_rng(0)
    (size,) = (t.bytes for t in TYPES.values() if t.name == kind)
    packed = rng.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    for at in FLOATS[kind]:
        packed[..., at : at + 2] = rng.normal(size=(rows, blocks, 1)).astype(np.float16).view(np.uint8)
    return packed.reshape(rows, -1)


@pytest.mark.parametrize("kind", FLOATS)
def test_blocks_are_dequantised_bit_for_bit(tmp_path, kind):
    packed = random_blocks(kind, rows=64, blocks=3)
    file = GgufFile(write(tmp_path / "a.gguf", tensors={"a": (packed, kind)}))
    expected = gguf.dequantize(packed, gguf.GGMLQuantizationType[kind])
    whole = file.read("a")
    assert whole.shape == file.shape("a") == expected.shape
    assert whole.dtype == file.dtype("a") == np.float32
    assert whole.tobytes() == expected.tobytes()
    for columns in (slice(0, 1), slice(5, 70), slice(31, 33), slice(32, 64), slice(expected.shape[1] - 7, None)):
        assert np.array_equal(file.read("a", (slice(3, 60), columns)), expected[3:60, columns])
    assert np.array_equal(file.read("a", (slice(3, 5),)), expected[3:5])


def test_plain_values_are_kept(tmp_path):
    values = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    bfloat16 = gguf.quantize(values, gguf.GGMLQuantizationType.BF16)
    tensors = {"f32": values, "f16": values.astype(np.float16), "bf16": (bfloat16, "BF16")}
    file = GgufFile(write(tmp_path / "a.gguf", tensors=tensors))
    assert [file.dtype(name).name for name in file.names()] == ["float32", "float16", "bfloat16"]
    expected = [values, tensors["f16"], gguf.dequantize(bfloat16, gguf.GGMLQuantizationType.BF16)]
    for name, value in zip(file.names(), expected, strict=True):
        assert np.array_equal(file.read(name).astype(np.float32), value.astype(np.float32))
        assert np.array_equal(file.read(name, (slice(1, 2), slice(1, 3))), value[1:2, 1:3])


def test_metadata_of_every_type(tmp_path):
    kinds = gguf.GGUFValueType
    pairs = [(kind.name, 1.5 if "FLOAT" in kind.name else 3, kind, None) for kind in kinds]
    pairs = [pair for pair in pairs if pair[0] not in ("STRING", "ARRAY", "BOOL")]
    pairs += [("yes", True, kinds.BOOL, None), ("text", "Straße\n☺", kinds.STRING, None)]
    pairs += [("numbers", [1, -2], kinds.ARRAY, kinds.INT32), ("texts", ["", "b"], kinds.ARRAY, kinds.STRING)]
    pairs += [("flags", [True, False], kinds.ARRAY, kinds.BOOL)]
    path = write(tmp_path / "a.gguf", tensors={"a": np.ones(1, np.float32)}, metadata=pairs)
    expected = {key: field.contents() for key, field in gguf.GGUFReader(path).fields.items() if "GGUF." not in key}
    assert GgufFile(path).metadata == expected
    assert {key: value for key, value, *_ in pairs}.items() <= expected.items()


def random_tensors(qk_norm=False, bias=False, head=True, size=4) -> dict[str, np.ndarray]:
    """All tensors of a tiny model with heads of `size`, by their names in GGUF."""
    rng = np.random.default_rng(0)
    shapes = {"token_embd.weight": [8, 16], "output_norm.weight": [16]} | ({"output.weight": [8, 16]} if head else {})
    for layer in range(2):
        block = {"attn_norm": [16], "attn_q": [4 * size, 16], "attn_k": [2 * size, 16], "attn_v": [2 * size, 16]}
        block |= {"attn_output": [16, 4 * size]}
        block |= {"ffn_norm": [16], "ffn_gate": [24, 16], "ffn_up": [24, 16], "ffn_down": [16, 24]}
        block |= {"attn_q_norm": [size], "attn_k_norm": [size]} if qk_norm else {}
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
        if bias:
            shapes |= {f"blk.{layer}.attn_{name}.bias": block[f"attn_{name}"][:1] for name in "qkv"}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("llama", {}),
        ("llama", {"head": False}),
        ("qwen2", {"bias": True}),
        ("qwen3", {"qk_norm": True, "size": 128}),  # transformers reads no other size of heads from a file
    ],
)
def test_names_rows_and_configuration_are_those_of_transformers(tmp_path, architecture, options):
    tensors, settings = random_tensors(**options), dict(LLAMA)
    if "size" in options:
        settings |= {"attention.key_length": options["size"], "attention.value_length": options["size"]}
    ids = {"bos": 3, "eos": 4, "padding": 5}
    ids = [(f"tokenizer.ggml.{name}_token_id", value, gguf.GGUFValueType.UINT32, None) for name, value in ids.items()]
    path = write(tmp_path / "a.gguf", architecture, settings, tensors, ids)
    source = GgufWeights(path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32)
    expected = {name: value.numpy() for name, value in theirs.state_dict().items()}
    if source.config["tie_word_embeddings"]:
        del expected["lm_head.weight"]
    assert sorted(source.names()) == sorted(expected)
    for name, value in expected.items():
        assert np.array_equal(source.read(name), value), name
        assert source.shape(name) == value.shape
        rows = slice(1, len(value) - 1)
        assert np.array_equal(source.read(name, (rows,)), value[rows])
    known = AutoConfig.for_model(**source.config).to_dict()
    assert known["rope_parameters"] == theirs.config.rope_parameters
    assert known["rms_norm_eps"] == pytest.approx(theirs.config.rms_norm_eps, rel=1e-7)
    for key in source.config.keys() - {"rope_theta", "rope_scaling", "rms_norm_eps", "architectures"}:
        assert known[key] == getattr(theirs.config, key, 4), key  # only the size of a head may be left to be derived
    source.close()


def test_biases_of_llama_are_reordered_like_their_rows(tmp_path):
    tensors = random_tensors(bias=True)
    tensors["blk.0.attn_q.weight"] = np.repeat(tensors["blk.0.attn_q.bias"][:, None], 16, 1)
    source = GgufWeights(write(tmp_path / "a.gguf", "llama", LLAMA, tensors))
    assert source.config["attention_bias"]
    bias = source.read("model.layers.0.self_attn.q_proj.bias")
    assert np.array_equal(source.read("model.layers.0.self_attn.q_proj.weight")[:, 0], bias)
    assert np.array_equal(bias[:4], tensors["blk.0.attn_q.bias"][[0, 2, 1, 3]])


def test_rotary_factors_are_those_of_transformers_and_give_the_settings(tmp_path):
    scaling = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling["original_max_position_embeddings"] = 8192
    config = AutoConfig.for_model("llama", hidden_size=128, num_attention_heads=2, rope_theta=5e5)
    config.rope_parameters |= scaling
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = 5e5 ** (-np.arange(0, 64, 2) / 64)
    factors = llama3_factors(5e5, 64, scaling)
    assert 1 < np.sort(factors)[len(factors) // 2] < 32  # there is a smooth part
    np.testing.assert_allclose(plain / factors, scaled.numpy(), rtol=1e-5)

    settings = LLAMA | {"embedding_length": 256, "rope.freq_base": 5e5}
    tensors = random_tensors() | {"rope_freqs.weight": factors}
    source = GgufWeights(write(tmp_path / "a.gguf", "llama", settings, tensors))
    assert source.config["rope_scaling"] == scaling
    assert not [name for name in source.names() if "rope" in name]
    tensors["rope_freqs.weight"] = factors * np.linspace(1, 2, 32, dtype=np.float32)
    refused(write(tmp_path / "b.gguf", "llama", settings, tensors), "rope_freqs.weight")


def test_scaled_rotary_frequencies_are_kept(tmp_path):
    settings = LLAMA | {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
    source = GgufWeights(write(tmp_path / "a.gguf", "llama", settings, random_tensors()))
    assert source.config["rope_scaling"] == {"rope_type": "linear", "factor": 4.0}


def refused(path, *words: str) -> None:
    refusals.refused(GgufWeights, path, saying=(str(path), *words))


@pytest.mark.parametrize(
    ("architecture", "changes", "words"),
    [
        ("gemma", {}, ["'gemma'", "llama, qwen2, qwen3"]),
        ("llama", {"expert_count": 8}, ["llama.expert_count = 8"]),
        ("llama", {"rope.scaling.type": "longrope"}, ["'longrope'"]),
        ("llama", {"rope.dimension_count": 2}, ["llama.rope.dimension_count = 2", "4"]),
        ("llama", {"attention.head_count": [4, 2]}, ["llama.attention.head_count", "[4, 2]"]),
        ("llama", {"block_count": None}, ["llama.block_count"]),
    ],
)
def test_models_that_are_not_read(tmp_path, architecture, changes, words):
    settings = {key: value for key, value in (LLAMA | changes).items() if value is not None}
    refused(write(tmp_path / "a.gguf", architecture, settings, random_tensors()), *words)


def test_a_type_that_is_not_read_is_named(tmp_path):
    packed = np.zeros((2, 84), np.uint8)
    refused(write(tmp_path / "a.gguf", "llama", LLAMA, {"a": (packed, "Q2_K")}), "Q2_K", "Q4_K", "(a)")


def test_files_that_are_damaged(tmp_path):
    path = write(tmp_path / "a.gguf", "llama", LLAMA, random_tensors())
    whole = path.read_bytes()
    refused(tmp_path / "b.gguf", "no such file")
    for size in [*range(4), *range(4, 2000, 41), len(whole) - 33]:
        path.write_bytes(whole[:size])
        refused(path, "no GGUF file" if size < 4 else "cut short")
    for version, word in ((1, "version 1"), (3 << 24, "big-endian")):
        path.write_bytes(whole[:4] + struct.pack("<I", version) + whole[8:])
        refused(path, word)


def test_parts_of_a_model_are_refused(tmp_path):
    parts = [("split.count", 3, gguf.GGUFValueType.UINT16, None)]
    refused(write(tmp_path / "a.gguf", "llama", LLAMA, random_tensors(), parts), "3 parts", "--merge")
