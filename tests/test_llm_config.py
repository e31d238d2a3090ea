"""Configurations of language models: every field has its effect, and what has none or is impossible is refused."""

import copy
import functools
import json
from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llm_models import drawn, raw, texts

from jaxscope.agents.llm.config import ModelConfig, check_length, from_hugging_face, to_hugging_face
from jaxscope.agents.llm.linear import LoraConfig
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.rotary import RopeConfig

GIVEN = texts((24, 9))
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 50.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 1.0,
    "beta_slow": 0.5,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_MSCALE = {**_YARN, "mscale": 1.5, "mscale_all_dim": 0.5}
_NO_FACTOR = {name: value for name, value in _YARN.items() if name != "factor"}
_SLIDING = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
_BY_KIND = {"full_attention": _YARN, "sliding_attention": {"rope_theta": 50.0}}

#: Where a field stands; what the configuration has before, beyond the sizes; what it has after.
CHANGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("llama", {}, {"vocab_size": 62}),
    ("llama", {}, {"hidden_size": 32}),
    ("llama", {}, {"intermediate_size": 32}),
    ("llama", {}, {"num_hidden_layers": 3}),
    ("llama", {}, {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}),
    ("llama", {}, {"num_key_value_heads": 4}),
    ("llama", {}, {"head_dim": 8}),
    ("llama", {}, {"rms_norm_eps": 1e-2}),
    ("llama", {}, {"hidden_act": "relu"}),
    ("llama", {"hidden_act": "gelu"}, {"hidden_act": "gelu_pytorch_tanh"}),
    ("llama", {}, {"tie_word_embeddings": True}),
    ("llama", {}, {"attention_bias": True}),
    ("llama", {}, {"mlp_bias": True}),
    ("llama", {}, {"model_type": "qwen2"}),
    ("llama", {}, {"rope_theta": 50.0}),
    ("llama", {}, {"rope_parameters": {"rope_theta": 50.0}}),
    ("llama", {}, {"partial_rotary_factor": 0.5}),
    ("llama", {}, {"rope_parameters": {"partial_rotary_factor": 0.5}}),
    ("llama", {}, {"rope_scaling": {"type": "linear", "factor": 2.0}}),
    ("llama", {}, {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}),
    ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, {"rope_scaling": {"type": "linear", "factor": 3.0}}),
    *(
        ("llama", {"rope_parameters": _LLAMA3}, {"rope_parameters": {**_LLAMA3, name: value}})
        for name, value in {
            "rope_theta": 50.0,
            "factor": 3.0,
            "low_freq_factor": 0.5,
            "high_freq_factor": 8.0,
            "original_max_position_embeddings": 64,
        }.items()
    ),
    *(
        ("llama", {"rope_parameters": _YARN}, {"rope_parameters": {**_YARN, name: value}})
        for name, value in {
            "rope_theta": 500.0,
            "factor": 3.0,
            "original_max_position_embeddings": 48,
            "beta_fast": 8.0,
            "beta_slow": 0.05,
            "attention_factor": 2.0,
            "truncate": False,
        }.items()
    ),
    ("llama", {"rope_parameters": _MSCALE}, {"rope_parameters": {**_MSCALE, "mscale": 3.0}}),
    ("llama", {"rope_parameters": _MSCALE}, {"rope_parameters": {**_MSCALE, "mscale_all_dim": 1.0}}),
    ("llama", {"rope_parameters": _NO_FACTOR}, {"max_position_embeddings": 48}),
    ("qwen2", {}, _SLIDING),
    ("qwen2", _SLIDING, {"sliding_window": 4}),
    ("qwen2", _SLIDING, {"max_window_layers": 0}),
    ("qwen3", _SLIDING, {"layer_types": ["sliding_attention", "full_attention"]}),
    ("qwen3", {}, {"attention_bias": True}),
    ("olmo3", {"sliding_window": 5}, {"sliding_window": 4}),
    ("olmo3", {"sliding_window": 5}, {"layer_types": ["sliding_attention", "full_attention"]}),
    ("olmo3", {"sliding_window": 5}, {"rope_parameters": {"sliding_attention": {"rope_theta": 50.0}}}),
    (
        "olmo3",
        {"layer_types": ["full_attention"] * 2, "rope_parameters": _BY_KIND},
        {"rope_parameters": {**_BY_KIND, "full_attention": {**_YARN, "factor": 3.0}}},
    ),
]
#: Fields that do not enter logits, or are of a family's own.
WITHOUT_LOGITS = {"bos_token_id", "eos_token_id", "pad_token_id", "initializer_range", "delta_net"}


def plain(name: str, **others: Any) -> dict[str, Any]:
    """The config.json of a family with nothing set but sizes."""
    sizes = {field: value for field, value in raw("llama").items() if field != "rope_parameters"}
    return copy.deepcopy({**sizes, "head_dim": 16, "model_type": name, **others})


def parsed(case: tuple[str, dict[str, Any], dict[str, Any]]) -> tuple[ModelConfig, ModelConfig]:
    name, before, after = case
    first = plain(name, **before)
    return from_hugging_face(first), from_hugging_face(first | copy.deepcopy(after))


def differing(one: Any, other: Any) -> set[str]:
    return {name for name, value in vars(one).items() if value != getattr(other, name)}


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: f"{case[0]}-{'-'.join(case[2])}")
def test_every_field_matters(case):
    """A change gives weights of other shapes, or other logits of the same weights."""
    before, after = (LanguageModel(config) for config in parsed(case))
    shapes = functools.partial(jax.tree.map, lambda leaf: leaf.shape)
    if shapes(before.abstract()) != shapes(after.abstract()):
        return
    params = drawn(before)
    # Without compilation, as each configuration would need its own.
    with jax.disable_jit():
        given = [jnp.asarray(part) for part in GIVEN]
        one, other = (np.asarray(model.logits(params, *given))[GIVEN.valid] for model in (before, after))
    assert np.abs(one - other).max() > 1e-3


def test_no_field_is_without_such_a_change():
    of_models, of_ropes = set(), set()
    for case in CHANGES:
        before, after = parsed(case)
        of_models |= differing(before, after)
        for kind, rope in before.ropes:
            of_ropes |= differing(rope, dict(after.ropes).get(kind, rope))
    assert of_models | WITHOUT_LOGITS == {field.name for field in fields(ModelConfig)}
    assert not of_models & WITHOUT_LOGITS
    assert of_ropes == {field.name for field in fields(RopeConfig)}


def test_fields_that_do_not_enter_logits():
    config = from_hugging_face(
        plain("llama", bos_token_id=1, eos_token_id=[2, 3], pad_token_id=2, initializer_range=0.5, hidden_size=64)
    )
    assert (config.bos_token_id, config.eos_token_id, config.pad_token_id) == (1, (2, 3), 2)
    assert from_hugging_face(plain("llama", eos_token_id=5)).eos_token_id == (5,)
    params = LanguageModel(config).init(jax.random.key(0))
    layer = params["layers"]["0"]
    for weights in (params["embed_tokens"], params["lm_head"], layer["mlp"]["up_proj"]):
        np.testing.assert_allclose(np.std(weights["weight"]), 0.5, rtol=0.05)
    assert np.all(np.asarray(params["norm"]["weight"]) == 1)
    # No two matrices are the same.
    assert not np.allclose(layer["mlp"]["up_proj"]["weight"][0], layer["mlp"]["up_proj"]["weight"][1])
    assert not np.allclose(layer["self_attn"]["k_proj"]["weight"], layer["self_attn"]["v_proj"]["weight"])


_REFUSED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"model_type": "lama"}, ("'lama'", "Did you mean 'llama'?", "olmo3, qwen2, qwen3")),
    ({"rope_thetta": 5.0}, ("not supported", "rope_thetta = 5.0")),
    ({"quantization_config": {"bits": 4}}, ("not supported", "quantization_config")),
    ({"layer_types": ["full_attention"] * 2}, ("not supported", "layer_types")),
    ({"rope_interleaved": True}, ("rope_interleaved = True", "llama")),
    ({"vocab_size": "61"}, ("vocab_size = '61'", "whole number")),
    ({"vocab_size": 61.0}, ("vocab_size = 61.0", "whole number")),
    ({"hidden_size": True}, ("hidden_size = True", "whole number")),
    ({"num_hidden_layers": 1.5}, ("num_hidden_layers = 1.5", "whole number")),
    ({"num_hidden_layers": 0}, ("num_hidden_layers = 0", "at least 1")),
    ({"num_hidden_layers": -2}, ("num_hidden_layers = -2", "at least 1")),
    ({"num_attention_heads": 0}, ("num_attention_heads = 0", "at least 1")),
    ({"num_key_value_heads": 0}, ("num_key_value_heads = 0", "at least 1")),
    ({"num_key_value_heads": 3}, ("num_attention_heads = 4", "multiple", "num_key_value_heads = 3")),
    ({"head_dim": 7}, ("head_dim = 7", "even")),
    ({"hidden_size": 3, "head_dim": None}, ("head_dim = 0", "at least 1")),
    ({"intermediate_size": -1}, ("intermediate_size = -1", "at least 1")),
    ({"max_position_embeddings": 0}, ("max_position_embeddings = 0", "at least 1")),
    ({"rms_norm_eps": "1e-6"}, ("rms_norm_eps = '1e-6'", "number")),
    ({"rms_norm_eps": float("nan")}, ("rms_norm_eps = nan", "number")),
    ({"rms_norm_eps": 0.0}, ("rms_norm_eps = 0.0", "positive")),
    ({"initializer_range": -0.02}, ("initializer_range = -0.02", "positive")),
    ({"hidden_act": "swish"}, ("hidden_act = 'swish'", "silu, gelu, gelu_pytorch_tanh, relu")),
    ({"tie_word_embeddings": "yes"}, ("tie_word_embeddings = 'yes'", "true or false")),
    ({"mlp_bias": 1}, ("mlp_bias = 1", "true or false")),
    ({"eos_token_id": "</s>"}, ("eos_token_id = '</s>'", "token's number")),
    ({"eos_token_id": [1, None]}, ("eos_token_id = [1, None]", "token's number")),
    ({"bos_token_id": 1.5}, ("bos_token_id = 1.5", "whole number")),
    ({"rope_parameters": 3}, ("rope_parameters = 3", "dictionary")),
    ({"rope_scaling": "linear"}, ("rope_scaling = 'linear'", "dictionary")),
    ({"rope_theta": "big"}, ("rope_theta = 'big'", "positive number")),
    ({"rope_theta": 0}, ("rope_theta = 0", "positive number")),
    ({"rope_theta": 1.0}, ("rope_theta = 1.0", "above 1")),
    ({"partial_rotary_factor": 1.5}, ("partial_rotary_factor = 1.5", "at most 1")),
    ({"partial_rotary_factor": 0.5, "head_dim": 6}, ("head_dim = 6", "even")),
    ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, ("rope_type = 'dynamic'", "default, linear, llama3, yarn")),
    ({"rope_scaling": {"type": "linear"}}, ("'linear' needs factor",)),
    ({"rope_scaling": {"type": "linear", "factor": 0}}, ("factor = 0", "positive number")),
    ({"rope_scaling": {"type": "linear", "factor": True}}, ("factor = True", "positive number")),
    ({"rope_scaling": {"factor": 2.0}}, ("'default' does not use factor",)),
    ({"rope_scaling": {"type": "linear", "factor": 2.0, "truncate": False}}, ("'linear' does not use truncate",)),
    ({"rope_scaling": {"type": "linear", "factor": 2.0, "long_factor": [1.0]}}, ("long_factor", "not supported")),
    ({"rope_scaling": {"type": "llama3", "factor": 2.0}}, ("'llama3' needs low_freq_factor, high_freq_factor",)),
    ({"rope_parameters": {**_LLAMA3, "high_freq_factor": 1.0}}, ("low_freq_factor = 1.0", "high_freq_factor = 1.0")),
    ({"rope_scaling": {"type": "yarn", "factor": 2.0}}, ("'yarn' needs original_max_position_embeddings",)),
    ({"rope_parameters": {**_YARN, "truncate": 1}}, ("truncate = 1", "true or false")),
    ({"rope_parameters": {"full_attention": _YARN}}, ("full_attention", "not supported")),
    ({"model_type": "qwen2", "use_mrope": True}, ("use_mrope = True", "qwen2")),
    ({"model_type": "qwen2", "attention_bias": True}, ("attention_bias = True", "qwen2")),
    ({"model_type": "qwen2", "layer_types": ["full_attention"]}, ("layer_types", "num_hidden_layers = 2")),
    ({"model_type": "qwen2", "layer_types": "full_attention"}, ("layer_types = 'full_attention'",)),
    ({"model_type": "qwen3", "layer_types": ["full_attention", "chunked"]}, ("'chunked'", "sliding_attention")),
    ({"model_type": "qwen3", "layer_types": ["linear_attention"] * 2}, ("linear attention", "sizes")),
    ({"model_type": "qwen3", "layer_types": ["sliding_attention"] * 2}, ("sliding layers need a sliding_window",)),
    ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 0}, ("sliding_window = 0", "at least 1")),
    ({"model_type": "olmo3", "rope_parameters": {"full": _YARN}}, ("rope_parameters of full",)),
    (
        {"model_type": "olmo3", "rope_parameters": {"full_attention": _YARN, "sliding_attention": 3}},
        ("= 3", "dictionary"),
    ),
]


def refused(call, *args, saying: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"\A.+\Z") as error:
        call(*args)
    assert not [words for words in saying if words not in str(error.value)], error.value


@pytest.mark.parametrize(("change", "saying"), _REFUSED, ids=lambda part: "-".join(part))
def test_what_is_impossible_is_refused(change, saying):
    refused(from_hugging_face, plain("llama") | change, saying=saying)


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "olmo3"])
def test_fields_that_a_model_cannot_do_without(name):
    sizes = {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"}
    for field in sizes | {"max_position_embeddings"}:
        whole = plain(name)
        from_hugging_face(whole)
        del whole[field]
        refused(from_hugging_face, whole, saying=(f"a {name} model has no {field}",))
    whole = plain(name)
    del whole["model_type"]
    refused(from_hugging_face, whole, saying=("no model_type",))


def test_what_a_file_cannot_hold_is_not_written():
    qwen = from_hugging_face(plain("qwen2"))
    refused(to_hugging_face, replace(qwen, mlp_bias=True), saying=("qwen2", "mlp_bias"))
    kinds = ("sliding_attention", "full_attention")
    rope = qwen.rope("full_attention")
    sliding = replace(
        from_hugging_face(plain("llama")),
        layer_types=kinds,
        sliding_window=4,
        ropes=tuple((kind, rope) for kind in kinds),
    )
    refused(to_hugging_face, sliding, saying=("llama", "layer_types", "sliding_window"))
    two_ropes = replace(qwen, ropes=(("full_attention", rope), ("sliding_attention", replace(rope, rope_theta=9.0))))
    refused(to_hugging_face, two_ropes, saying=("qwen2", "ropes"))


def test_parts_without_a_rope_are_refused():
    config = from_hugging_face(plain("llama"))
    refused(functools.partial(replace, config, ropes=()), saying=("full_attention", "need a rope"))


def test_options_of_models():
    config = from_hugging_face(plain("llama"))

    def build(options: dict[str, Any]) -> LanguageModel:
        return LanguageModel(config, **options)

    refused(build, {"compute": "float16"}, saying=("'float16'", "float32, bfloat16"))
    refused(build, {"remat": "all"}, saying=("'all'", "none, products, layers"))
    refused(build, {"members": 2}, saying=("members", "LoraConfig"))
    refused(build, {"lora": LoraConfig(), "members": 0}, saying=("members", "at least one"))


@pytest.mark.parametrize("length", [0, 97])
def test_contexts_that_do_not_fit(length):
    config = from_hugging_face(plain("llama"))
    check_length(config, 96)
    refused(check_length, config, length, saying=(str(length), "96"))


@pytest.mark.parametrize(
    ("kinds", "period"),
    [("ffff", 1), ("sffs", 4), ("sfsf", 2), ("sssfsssf", 4), ("ssf", 3), ("f", 1)],
)
def test_period(kinds, period):
    names = {"s": "sliding_attention", "f": "full_attention"}
    layers = [names[kind] for kind in kinds]
    config = from_hugging_face(plain("olmo3", layer_types=layers, num_hidden_layers=len(layers)))
    assert config.period == period
    assert config.num_hidden_layers == len(layers)


#: Texts of config.json files, and how many parameters those models have.
KNOWN = {
    "SmolLM2-135M-Instruct": (
        """{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1,
        "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
        "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192, "mlp_bias": false,
        "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
        "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
        "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}},
        "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 49152}""",
        134_515_008,
    ),
    "Llama-3.2-1B": (
        """{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048,
        "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false,
        "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
        "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
        "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
        "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256}""",
        1_235_814_400,
    ),
    "Qwen2.5-0.5B": (
        """{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
        "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
        "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2",
        "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false, "use_sliding_window": false,
        "vocab_size": 151936}""",
        494_032_768,
    ),
    "Qwen3-4B-Instruct-2507": (
        """{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560,
        "initializer_range": 0.02, "intermediate_size": 9728, "max_position_embeddings": 262144,
        "max_window_layers": 36, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 5000000,
        "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936}""",
        4_022_468_096,
    ),
    "Qwen3-8B": (
        """{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
        "initializer_range": 0.02, "intermediate_size": 12288, "max_position_embeddings": 40960,
        "max_window_layers": 36, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
        "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936}""",
        8_190_735_360,
    ),
    "Olmo-3-7B": (
        """{"architectures": ["Olmo3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 11008, "max_position_embeddings": 65536, "model_type": "olmo3",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "pad_token_id": 100277,
        "rms_norm_eps": 1e-06, "rope_scaling": {"attention_factor": 1.2079441541679836, "beta_fast": 32.0,
        "beta_slow": 1.0, "factor": 8.0, "original_max_position_embeddings": 8192, "rope_type": "yarn"},
        "rope_theta": 500000, "sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.57.0", "use_cache": false, "vocab_size": 100278}""",
        7_298_011_136,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_files_of_known_models(name):
    text, parameters = KNOWN[name]
    found = json.loads(text)
    config = from_hugging_face(found)
    shapes = LanguageModel(config).abstract()
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == parameters
    assert from_hugging_face(to_hugging_face(config)) == config
    full = config.rope("full_attention")
    assert full.rope_theta == found["rope_theta"]
    assert full.factor == (found.get("rope_scaling") or {}).get("factor")
    assert config.eos_token_id == (found["eos_token_id"],)


def test_olmo_stretches_only_its_full_layers():
    config = from_hugging_face(json.loads(KNOWN["Olmo-3-7B"][0]))
    assert config.kinds == ("sliding_attention",) * 3 + ("full_attention",)
    assert config.rope("full_attention").rope_type == "yarn"
    assert config.rope("sliding_attention") == RopeConfig(rope_theta=500000)
