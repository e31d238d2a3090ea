"""Observations in units of their running spread, as part of a policy's weights: who keeps the weights keeps these."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

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
        count, mean, squares = (jax.lax.stop_gradient(of[...]) for of in (self.count, self.mean, self.squares))
        variance = jnp.where(count > 0, squares / jnp.maximum(count, 1.0), 1.0)
        lead = (1,) * (obs.ndim - mean.ndim)
        scaled = (obs - mean.reshape(lead + mean.shape)) * jax.lax.rsqrt(variance + _SMALLEST_VARIANCE).reshape(
            lead + mean.shape
        )
        return jnp.clip(scaled, -FARTHEST, FARTHEST)


def observe(statistics: PyTree, obs: Float[Array, "T R *o"]) -> PyTree:
    """The statistics of a normaliser after a rollout (two parts joined as by Chan et al. 1979)."""
    obs = obs.astype(jnp.float32)
    count = jnp.float32(obs.shape[0] * obs.shape[1])
    mean = obs.mean(axis=(0, 1))
    squares = ((obs - mean[None, None]) ** 2).sum(axis=(0, 1))
    total = statistics["count"] + count
    apart = mean - statistics["mean"]
    return {
        "count": total,
        "mean": statistics["mean"] + apart * (count / total),
        "squares": statistics["squares"] + squares + apart**2 * (statistics["count"] * count / total),
    }
