"""Drawing the next token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray


@dataclass(frozen=True)
class Sampling:
    """How logits become a distribution, in this order: temperature, the k best, the nucleus, the floor."""

    temperature: float = 1.0
    """Logits are divided by it; 0 takes the likeliest token."""
    top_k: int | None = None
    """Keep the k likeliest tokens, and those that tie with the last of them."""
    top_p: float = 1.0
    """Keep the fewest likeliest tokens that together have this probability, and those that tie with the last."""
    min_p: float = 0.0
    """Keep tokens with at least this share of the likeliest one's probability."""

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise ValueError(f"temperature = {self.temperature}: must be at least 0")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k = {self.top_k}: must be at least 1, or none")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p = {self.top_p}: must be above 0, at most 1")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p = {self.min_p}: must be from 0 to 1")


class Draw(NamedTuple):
    """A token of every row."""

    token: Int[Array, " B"]
    log_prob: Float[Array, " B"]
    """Under the distribution that it was drawn from."""
    raw_log_prob: Float[Array, " B"]
    """Under the softmax of the logits as they came."""


def draw(key: PRNGKeyArray, logits: Float[Array, "B V"], sampling: Sampling) -> Draw:
    """One token a row."""
    raw = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    if sampling.temperature == 0:
        token = jnp.argmax(logits, axis=-1)
        return Draw(token, jnp.zeros(token.shape), _at(raw, token))
    # The best logit becomes 0, as a low temperature could make it overflow.
    best = jnp.max(logits, axis=-1, keepdims=True)
    kept = restrict((logits - best) / sampling.temperature, sampling)
    token = inverse(jax.random.uniform(key, logits.shape[:1]), jax.nn.softmax(kept, axis=-1))
    return Draw(token, _at(kept, token) - jax.nn.logsumexp(kept, axis=-1), _at(raw, token))


def restrict(logits: Float[Array, "B V"], sampling: Sampling) -> Float[Array, "B V"]:
    """Minus infinity where a token is not kept."""
    if sampling.top_k is not None and sampling.top_k < logits.shape[-1]:
        last = jax.lax.top_k(logits, sampling.top_k)[0][:, -1:]
        logits = jnp.where(logits < last, -jnp.inf, logits)
    if sampling.top_p < 1:
        ordered = jnp.sort(logits, axis=-1, descending=True)
        before = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) - jax.nn.softmax(ordered, axis=-1)
        inside = jnp.where(before < sampling.top_p, ordered, jnp.inf)
        logits = jnp.where(logits < jnp.min(inside, axis=-1, keepdims=True), -jnp.inf, logits)
    if sampling.min_p > 0:
        best = jnp.max(logits, axis=-1, keepdims=True)
        logits = jnp.where(logits < best + jnp.log(sampling.min_p), -jnp.inf, logits)
    return logits


def inverse(uniform: Float[Array, " B"], probabilities: Float[Array, "B V"]) -> Int[Array, " B"]:
    """The first token, among those possible, whose cumulative probability exceeds a number that is uniform in [0, 1).

    It takes one random number a row, not V.
    """
    # Sums are taken in an order that suits the machine: those of two neighbours may differ although the second token
    # has probability 0, and the last need not be the largest.
    possible = probabilities > 0
    cumulative = jnp.cumsum(probabilities, axis=-1)
    total = jnp.max(jnp.where(possible, cumulative, 0.0), axis=-1, keepdims=True)
    # Rounding could bring the product up to the total, which no token exceeds.
    threshold = jnp.minimum(uniform[:, None] * total, jnp.nextafter(total, jnp.zeros_like(total)))
    size = probabilities.shape[-1]
    exceeding = jnp.where(possible & (cumulative > threshold), jnp.arange(size)[None], size)
    return jnp.min(exceeding, axis=-1)


def _at(values: Float[Array, "B V"], token: Int[Array, " B"]) -> Float[Array, " B"]:
    return jnp.take_along_axis(values, token[:, None], axis=-1)[:, 0]
