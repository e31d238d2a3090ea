"""Action and observation spaces: frozen descriptions that can draw and check values."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray


@dataclass(frozen=True)
class Discrete:
    """The integers 0 .. n - 1."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def dtype(self) -> jnp.dtype:
        return jnp.dtype(jnp.int32)

    def sample(self, key: PRNGKeyArray) -> Array:
        """A value drawn uniformly."""
        return jax.random.randint(key, (), 0, self.n)

    def contains(self, x: Array) -> Bool[Array, ""]:
        """Whether `x` is one value of this space: right shape, integer, in range."""
        x = jnp.asarray(x)
        fits = x.shape == () and jnp.issubdtype(x.dtype, jnp.integer)
        return jnp.asarray(fits) if not fits else (x >= 0) & (x < self.n)


@dataclass(frozen=True)
class Box:
    """Arrays of one shape with values in [low, high], the same bounds for every entry.

    Integers are int32, or uint8 where `byte` says so: a quarter of the memory for observations of many small counts.
    """

    low: float
    high: float
    shape: tuple[int, ...]
    integer: bool = False
    byte: bool = False

    def __post_init__(self) -> None:
        if self.byte and not (self.integer and self.low >= 0 and self.high <= 255):
            raise ValueError(f"only integers within 0 .. 255 fit into bytes, not {self}")

    @property
    def dtype(self) -> jnp.dtype:
        if self.byte:
            return jnp.dtype(jnp.uint8)
        return jnp.dtype(jnp.int32 if self.integer else jnp.float32)

    def sample(self, key: PRNGKeyArray) -> Array:
        """A value drawn uniformly, bounds included for integers."""
        if self.integer:
            return jax.random.randint(key, self.shape, int(self.low), int(self.high) + 1).astype(self.dtype)
        return jax.random.uniform(key, self.shape, minval=self.low, maxval=self.high)

    def contains(self, x: Array) -> Bool[Array, ""]:
        """Whether `x` is one value of this space: right shape, right kind of number, in range."""
        x = jnp.asarray(x)
        kind = jnp.integer if self.integer else jnp.floating
        fits = x.shape == self.shape and jnp.issubdtype(x.dtype, kind)
        return jnp.asarray(fits) if not fits else jnp.all((x >= self.low) & (x <= self.high))


Space = Discrete | Box
