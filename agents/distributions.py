"""Action distributions as pytrees: what a policy's head returns."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
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


class SquashedGaussian(NamedTuple):
    """Independent normal distributions, squashed by tanh into the open box between `low` and `high`.

    The last axis is the vector of one action; log-density and entropy are of the whole vector, in nats. The box
    should not lie many times its width away from 0, where float32 has few digits for the difference.
    """

    mean: Float[Array, "*batch d"]  # before squashing
    log_std: Float[Array, "*batch d"]
    low: float
    high: float

    def sample(self, key: PRNGKeyArray) -> Float[Array, "*batch d"]:
        """One draw per batch entry."""
        latent = self.mean + jnp.exp(self.log_std) * jax.random.normal(key, self.mean.shape)
        return self._middle + self._half * jnp.clip(jnp.tanh(latent), -_WIDEST, _WIDEST)

    def log_prob(self, value: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Log-density of `value` with respect to the box.

        It is taken from the value itself and not from what was squashed, so that a stored action has one density.
        """
        latent = jnp.arctanh(jnp.clip((value - self._middle) / self._half, -_WIDEST, _WIDEST))
        z = (latent - self.mean) * jnp.exp(-self.log_std)
        density = -0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi)
        return jnp.sum(density - self._log_slope(latent), axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Entropy, at most `d log(high - low)`.

        It is that of the normal distribution and the mean log-slope of the squashing, by Gauss-Hermite quadrature.
        """
        points = jnp.asarray(_POINTS, self.mean.dtype).reshape((-1,) + (1,) * self.mean.ndim)
        weights = jnp.asarray(_WEIGHTS, self.mean.dtype).reshape(points.shape)
        slopes = self._log_slope(self.mean[None] + jnp.exp(self.log_std)[None] * points)
        normal = self.log_std + 0.5 * math.log(2 * math.pi * math.e)
        return jnp.sum(normal + jnp.sum(weights * slopes, axis=0), axis=-1)

    def _log_slope(self, latent: Array) -> Array:
        """The logarithm of how much an interval grows by squashing; without cancellation far from 0."""
        return 2.0 * (math.log(2.0) - latent - jax.nn.softplus(-2.0 * latent)) + math.log(self._half)

    @property
    def _middle(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def _half(self) -> float:
        return 0.5 * (self.high - self.low)


Distribution = Categorical | SquashedGaussian

#: How far towards the bounds squashed values reach: nearer, float32 cannot tell where they came from.
_WIDEST = 1.0 - 1e-6
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
