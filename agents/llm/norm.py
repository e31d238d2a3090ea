"""Root-mean-square normalisation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float


class RMSNorm(nnx.Module):
    """`x / rms(x) * weight`, computed in float32; with `from_zero`, `* (1 + weight)`."""

    def __init__(self, size: int, eps: float, *, from_zero: bool = False):
        self.eps, self.from_zero = eps, from_zero
        self.weight = nnx.Param(jnp.zeros(size) if from_zero else jnp.ones(size))

    def __call__(self, x: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
        wide = x.astype(jnp.float32)
        wide *= jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + self.eps)
        weight = self.weight[...].astype(jnp.float32).reshape((1,) * (x.ndim - 1) + (-1,))
        return (wide * (1 + weight if self.from_zero else weight)).astype(x.dtype)
