"""From what the last layer gives to logits and log-probabilities."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxscope.agents.llm.linear import times


class TokenStatistics(NamedTuple):
    """Of each token: its log-probability, and the entropy of the distribution that it was drawn from, in nats."""

    log_prob: Float[Array, "B T"]
    entropy: Float[Array, "B T"]


def logits(hidden: Float[Array, "*b d"], head: Float[Array, "V d"]) -> Float[Array, "*b V"]:
    """In float32, whatever the precision of the product."""
    return times(hidden, head).astype(jnp.float32)


def statistics(
    hidden: Float[Array, "B T d"],
    head: Float[Array, "V d"],
    tokens: Int[Array, "B T"],
    temperature: float = 1.0,
    keep_logits: bool = False,
) -> TokenStatistics:
    """Statistics of `tokens` under softmax(logits / temperature), row by row."""

    def of_row(row):
        hidden, tokens = row
        found = logits(hidden, head) / temperature
        total = jax.nn.logsumexp(found, axis=-1)
        log_prob = jnp.take_along_axis(found, tokens[:, None], axis=-1)[:, 0] - total
        entropy = total - jnp.sum(jax.nn.softmax(found, axis=-1) * found, axis=-1)
        return TokenStatistics(log_prob, entropy)

    return jax.lax.map(of_row if keep_logits else jax.checkpoint(of_row, prevent_cse=False), (hidden, tokens))
