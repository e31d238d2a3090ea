"""The supervised loss: what transformers' own training minimises, for parity, for pre-training and for benchmarks."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxscope.agents.llm.model import LanguageModel
from jaxscope.types import PyTree


def next_token_loss(
    model: LanguageModel, params: PyTree, tokens: Int[Array, "B T"], lengths: Int[Array, " B"]
) -> Float[Array, ""]:
    """Mean negative log-probability of every token but each row's first, in nats: tokens weigh alike."""
    found = model.log_probs(params, tokens, lengths)
    return -jnp.sum(found.log_prob) / jnp.maximum(jnp.sum(jnp.maximum(lengths - 1, 0)), 1)
