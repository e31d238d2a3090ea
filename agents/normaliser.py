"""Observations in units of their running spread, as part of a policy's weights: who keeps the weights keeps these."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from jaxscope.agents.moments import Moments
from jaxscope.types import PyTree

#: Normalised entries are cut off here: what hardly ever changed may suddenly change by many times its spread.
FARTHEST = 10.0
_SMALLEST_VARIANCE = 1e-6


class Statistic(nnx.Variable):
    """Counted, not learned: no gradient flows into it."""


class Normaliser(nnx.Module):
    """Subtracts the mean of every entry and divides by its standard deviation, both over all observations so far."""

    def __init__(self, obs_shape: tuple[int, ...]):
        self.count = Statistic(jnp.zeros(()))
        self.mean = Statistic(jnp.zeros(obs_shape))
        self.squares = Statistic(jnp.zeros(obs_shape))  # sums of squared deviations from the mean

    def __call__(self, obs: Float[Array, "*b *o"]) -> Float[Array, "*b *o"]:
        seen = Moments(*(jax.lax.stop_gradient(of[...]) for of in (self.count, self.mean, self.squares)))
        variance = jnp.where(seen.count > 0, seen.variance, 1.0)
        entries = (1,) * (obs.ndim - seen.mean.ndim) + seen.mean.shape
        scale = jax.lax.rsqrt(variance + _SMALLEST_VARIANCE)
        return jnp.clip((obs - seen.mean.reshape(entries)) * scale.reshape(entries), -FARTHEST, FARTHEST)


def observe(statistics: PyTree, obs: Float[Array, "T R *o"]) -> PyTree:
    """The statistics of a normaliser after a rollout."""
    return Moments(**statistics).including(obs.astype(jnp.float32))._asdict()
