"""Language models small enough for any test, of every family, with weights and adapters that are far from zero."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxscope.agents.llm import fused, generate
from jaxscope.agents.llm.config import ModelConfig, from_hugging_face
from jaxscope.agents.llm.lora import join, split
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "head_dim": 8,
}
#: What a family needs beyond the sizes.
OWN = {
    "llama": {"attention_bias": True, "tie_word_embeddings": True},
    "olmo3": {"sliding_window": 5},
    "qwen2": {"head_dim": None},
    "qwen3": {},
    # Sizes and an epsilon with which its gradients are not at the mercy of rounding: it normalises short vectors.
    "qwen3_5": {
        "rms_norm_eps": 1e-2,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
    },
}


def tiny_config(family: str, **others) -> ModelConfig:
    raw = {"model_type": family, **SIZES, **OWN[family], **others}
    return from_hugging_face({name: value for name, value in raw.items() if value is not None})


def with_random_adapters(params, seed: int = 0):
    """`params` with every adapter's leaves drawn anew: a fresh adapter is the identity."""
    base, adapters = split(params)
    rng = np.random.default_rng(seed)
    return join(base, jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape) * 0.5, leaf.dtype), adapters))


def drawn(model: LanguageModel, seed: int = 0):
    """Weights of a spread that makes every layer matter, biases and norms too."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: jnp.asarray(rng.normal(size=leaf.shape) * 0.3 + (leaf.ndim < 3), leaf.dtype), model.abstract()
    )


def some_tokens(rows: int, length: int, seed: int = 0, vocab: int = 40):
    """Tokens and lengths of rows, none of them empty."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.integers(0, vocab, (rows, length))), jnp.asarray(rng.integers(1, length + 1, rows))


def turn(model, params, tokens, counts, placed=lambda cache: cache):
    """Read, then write four tokens greedily by cached keys and values; the logits after each.

    `placed` is applied to the empty cache.
    """
    speaker = generate.begin(model, tokens.shape[0], 16)
    speaker = generate.listen(model, params, speaker._replace(cache=placed(speaker.cache)), tokens, counts)
    heard, weights = speaker.logits, fused.fuse(model, params)
    speaker, turn = generate.speak(model, weights, speaker, jax.random.key(0), Sampling(temperature=0.0), (), 4)
    return heard, speaker.logits, turn
