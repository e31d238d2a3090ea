"""Action distributions as pytrees: what a policy's head returns."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray


class Categorical(NamedTuple):
    """A distribution over 0 .. n - 1, from unnormalised log-probabilities."""

    logits: Float[Array, "*batch n"]

    def sample(self, key: PRNGKeyArray) -> Int[Array, "*batch"]:
        """One draw per batch entry."""
        return jax.random.categorical(key, self.logits)

    def log_prob(self, value: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Log-probability of `value`, in nats."""
        # A compare-and-sum in place of a gather: gathers and their scatter gradients are slow on every backend.
        chosen = value[..., None] == jnp.arange(self.logits.shape[-1]).reshape((1,) * value.ndim + (-1,))
        return jnp.sum(jnp.where(chosen, jax.nn.log_softmax(self.logits), 0.0), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Entropy in nats, between 0 and log n."""
        log_p = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)
