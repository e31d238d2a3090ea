"""Language models small enough for any test, of every family, and texts for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxscope.agents.llm.config import from_hugging_face
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.types import PyTree

VOCABULARY = 61
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16}
_SLIDING = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}

#: Of each model, the fields of config.json that differ from `SIZES`. Texts are longer than the old contexts.
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0}},
    "llama-tied-biases": {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True, "head_dim": 8},
    "llama-linear": {"rope_parameters": {"rope_type": "linear", "rope_theta": 300.0, "factor": 3.0}},
    "llama-llama3": {"rope_parameters": _LLAMA3, "hidden_act": "gelu", "num_key_value_heads": 4},
    "llama-yarn": {"rope_parameters": {**_YARN, "beta_fast": 8.0, "beta_slow": 2.0}, "num_key_value_heads": 1},
    "qwen2": {"tie_word_embeddings": True, "rms_norm_eps": 1e-3},
    "qwen2-sliding": {**_SLIDING, "hidden_act": "gelu_pytorch_tanh"},
    "qwen3": {"head_dim": 16, "attention_bias": True, "hidden_act": "relu"},
    "qwen3-sliding-yarn": {
        **_SLIDING,
        "head_dim": 10,
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "rope_parameters": {**_YARN, "truncate": False, "mscale": 1.5, "mscale_all_dim": 0.5},
    },
    "olmo3": {"sliding_window": 5, "num_hidden_layers": 4},
    "olmo3-yarn": {
        "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention"],
        "attention_bias": True,
        "rope_parameters": {
            "full_attention": {**_YARN, "attention_factor": 1.3},
            "sliding_attention": {"rope_type": "default", "rope_theta": 200.0},
        },
    },
}


def family(name: str) -> str:
    return name.split("-")[0]


def raw(name: str) -> dict[str, Any]:
    """The config.json of a model of `MODELS`."""
    return {"model_type": family(name), **SIZES, **MODELS[name]}


def build(name: str, **options: Any) -> tuple[LanguageModel, PyTree]:
    """A model of `MODELS` with random weights that make every part of it matter.

    Args:
        options: of `LanguageModel`.
    """
    model = LanguageModel(from_hugging_face(raw(name)), **options)
    return model, drawn(model)


def drawn(model: LanguageModel, seed: int = 0) -> PyTree:
    generator = np.random.default_rng(seed)

    def leaf(path: Any, like: Any) -> jax.Array:
        around = 1.0 if "norm" in path[-2].key else 0.0
        return jnp.asarray(generator.normal(around, 0.3, like.shape), like.dtype)

    return jax.tree_util.tree_map_with_path(leaf, model.abstract())


class Texts(NamedTuple):
    """Rows of different lengths, padded on the right."""

    tokens: np.ndarray
    lengths: np.ndarray

    @property
    def valid(self) -> np.ndarray:
        return np.arange(self.tokens.shape[1])[None] < self.lengths[:, None]


def texts(lengths: tuple[int, ...] = (40, 23, 1), seed: int = 0) -> Texts:
    rows = np.random.default_rng(seed).integers(0, VOCABULARY, (len(lengths), max(lengths)))
    return Texts(rows.astype(np.int32), np.asarray(lengths, np.int32))
