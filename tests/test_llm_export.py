"""Written folders: read back, and read by transformers."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from jaxscope.agents.llm import export
from jaxscope.agents.llm.export import write_folder
from jaxscope.agents.llm.load import fill
from jaxscope.agents.llm.names import nested
from jaxscope.agents.llm.safetensors_folder import INDEX, SINGLE, SafetensorsFolder


def drawn(period=1, dtype=jnp.float32) -> dict:
    rng = np.random.default_rng(0)
    shapes: dict[tuple[str, ...], tuple[int, ...]] = {("embed_tokens", "weight"): (16, 8), ("norm", "weight"): (8,)}
    for kind in range(period):
        shapes["layers", str(kind), "mlp", "up_proj", "weight"] = (4 // period, 12, 8)
        shapes["layers", str(kind), "input_layernorm", "weight"] = (4 // period, 8)
    return nested({path: jnp.asarray(rng.normal(size=shape), dtype) for path, shape in shapes.items()})


def read_back(folder, params, period) -> dict:
    return fill(
        jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), params), SafetensorsFolder(folder), period
    )


def equal(one, other) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: a.dtype == b.dtype and np.array_equal(a, b), one, other))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("period", [1, 2])
@pytest.mark.parametrize("shard_bytes", [1 << 30, 700, 1])
def test_what_is_written_is_read_back(tmp_path, dtype, period, shard_bytes):
    params = drawn(period, dtype)
    files = {"tokenizer.json": b"{}"}
    folder = write_folder(params, {"model_type": "llama"}, tmp_path / "a" / "b", period, files, None, shard_bytes)
    assert equal(read_back(folder, params, period), params)
    assert (folder / "tokenizer.json").read_bytes() == b"{}"
    assert json.loads((folder / "config.json").read_text()) == {"model_type": "llama", "torch_dtype": dtype.__name__}
    assert [path.name for path in folder.parent.iterdir()] == ["b"]
    shards = sorted(folder.glob("*.safetensors"))
    assert (folder / INDEX).exists() == (len(shards) > 1) == (shard_bytes < 1 << 30)
    for path in shards:
        held = load_file(path)  # the safetensors package reads what we wrote
        with safe_open(path, "pt") as file:
            assert file.metadata() == {"format": "pt"}
        assert sum(x.nbytes for x in held.values()) <= shard_bytes or len(held) == 1
    if shard_bytes == 1:
        assert len(shards) == 10
        assert json.loads((folder / INDEX).read_text())["metadata"]["total_size"] == sum(
            x.nbytes for x in jax.tree.leaves(params)
        )


def test_another_type_can_be_asked_for(tmp_path):
    params = drawn()
    folder = write_folder(params, {}, tmp_path / "a", 1, dtype=jnp.bfloat16)
    rounded = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
    assert equal(read_back(folder, rounded, 1), rounded)


def test_a_full_folder_is_left_alone(tmp_path):
    (tmp_path / "kept").mkdir()
    write_folder(drawn(), {}, tmp_path / "kept", 1)
    before = {path: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    with pytest.raises(ValueError, match="there already"):
        write_folder(drawn(), {"a": 1}, tmp_path / "kept", 1)
    assert {path: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == before
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="there already"):
        write_folder(drawn(), {}, tmp_path / "file", 1)


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(export.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_folder(drawn(), {}, tmp_path / "a", 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["config.json", SINGLE, INDEX, "../tokenizer.json", "a/b"])
def test_names_of_tokenizer_files(tmp_path, name):
    with pytest.raises(ValueError, match="tokenizer_files"):
        write_folder(drawn(), {}, tmp_path / "a", 1, {name: b""})


def test_types_that_safetensors_do_not_know(tmp_path):
    with pytest.raises(ValueError, match=r"norm/weight is of the type int4.* BF16|bfloat16"):
        write_folder({"norm": {"weight": jnp.zeros(2, jnp.int4)}}, {}, tmp_path / "a", 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tied", "dtype", "shard_bytes"), [(False, torch.float32, 1 << 30), (True, torch.bfloat16, 4000)]
)
def test_transformers_reads_what_is_written(tmp_path, tied, dtype, shard_bytes):
    sizes: dict[str, Any] = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(**sizes, **heads, tie_word_embeddings=tied, architectures=["LlamaForCausalLM"])
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    state = {name: value.float().numpy() for name, value in model.state_dict().items()}
    stacks: dict[tuple[str, ...], list[np.ndarray]] = {}
    for name, value in state.items():
        path = name.removeprefix("model.").split(".")
        if path[0] == "layers":
            path[1] = "0"
        if not (tied and path[0] == "lm_head"):
            stacks.setdefault(tuple(path), []).append(value)
    flat = {path: jnp.asarray(np.stack(x) if path[0] == "layers" else x[0]) for path, x in stacks.items()}
    wanted = jnp.bfloat16 if dtype == torch.bfloat16 else jnp.float32
    folder = write_folder(nested(flat), config.to_dict(), tmp_path / "a", 1, None, wanted, shard_bytes)
    loaded: Any
    loaded, told = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)  # pyright: ignore
    assert not any(told.values()), told
    assert loaded.dtype == dtype
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value.to(dtype)), name
