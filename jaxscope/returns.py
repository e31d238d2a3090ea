"""Advantages and returns: pure functions of time-major arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def gae(
    reward: Float[Array, "T ..."],
    value: Float[Array, "T ..."],
    next_value: Float[Array, "T ..."],
    terminated: Bool[Array, "T ..."],
    truncated: Bool[Array, "T ..."],
    gamma: float,
    gae_lambda: float,
) -> Float[Array, "T ..."]:
    """Generalised advantage estimates (Schulman et al. 2016, equation 16), with true ends and time limits apart.

    A termination makes the value of what follows zero; a truncation keeps it. Either stops the trace.

    Args:
        next_value: value of the observation after each step, before any reset.
    """
    delta = reward + gamma * next_value * (1.0 - terminated) - value
    keep = gamma * gae_lambda * (1.0 - (terminated | truncated))

    def step(after: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        delta_t, keep_t = inputs
        advantage = delta_t + keep_t * after
        return advantage, advantage

    return jax.lax.scan(step, jnp.zeros_like(delta[0]), (delta, keep), reverse=True)[1]
