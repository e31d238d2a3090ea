"""Loss terms: pure functions of arrays, one entry per sample, to be averaged by the caller."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def clipped_surrogate(log_ratio: Float[Array, "*b"], advantage: Float[Array, "*b"], clip: float) -> Float[Array, "*b"]:
    """PPO's pessimistic policy loss (Schulman et al. 2017, equation 7), to be minimised."""
    ratio = jnp.exp(log_ratio)
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage)


def clipped_value(
    value: Float[Array, "*b"], old_value: Float[Array, "*b"], target: Float[Array, "*b"], clip: float
) -> Float[Array, "*b"]:
    """Half the squared error, at its larger with the value kept within `clip` of the old one."""
    near = old_value + jnp.clip(value - old_value, -clip, clip)
    return 0.5 * jnp.maximum(jnp.square(value - target), jnp.square(near - target))


def approximate_kl(log_ratio: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """The low-variance, non-negative estimate of KL(old, new) from samples of the old policy: ratio - 1 - log ratio."""
    return jnp.exp(log_ratio) - 1.0 - log_ratio
