"""Action and observation spaces: frozen descriptions that can draw and check values."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
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
    `support` are the indices into the flattened array, ascending, of entries that can differ from 0 (None: all can), so
    that a network need not multiply by the others.
    """

    low: float
    high: float
    shape: tuple[int, ...]
    integer: bool = False
    byte: bool = False
    support: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.byte and not (self.integer and self.low >= 0 and self.high <= 255):
            raise ValueError(f"only integers within 0 .. 255 fit into bytes, not {self}")
        if self.support is not None:
            fits = all(a < b for a, b in itertools.pairwise((-1, *self.support, math.prod(self.shape))))
            if not fits or not self.low <= 0 <= self.high:
                raise ValueError(
                    f"support = {self.support}: must be ascending indices, and 0 within the bounds, of {self}"
                )

    @property
    def dtype(self) -> jnp.dtype:
        if self.byte:
            return jnp.dtype(jnp.uint8)
        return jnp.dtype(jnp.int32 if self.integer else jnp.float32)

    def sample(self, key: PRNGKeyArray) -> Array:
        """A value drawn uniformly, bounds included for integers."""
        if self.integer:
            drawn = jax.random.randint(key, self.shape, int(self.low), int(self.high) + 1).astype(self.dtype)
        else:
            drawn = jax.random.uniform(key, self.shape, minval=self.low, maxval=self.high)
        return jnp.where(self._always_zero(), jnp.zeros_like(drawn), drawn)

    def contains(self, x: Array) -> Bool[Array, ""]:
        """Whether `x` is one value of this space: right shape, right kind of number, in range."""
        x = jnp.asarray(x)
        kind = jnp.integer if self.integer else jnp.floating
        fits = x.shape == self.shape and jnp.issubdtype(x.dtype, kind)
        if not fits:
            return jnp.asarray(fits)
        return jnp.all((x >= self.low) & (x <= self.high) & ~(self._always_zero() & (x != 0)))

    def _always_zero(self) -> Bool[np.ndarray, "*shape"]:
        zero = np.full(math.prod(self.shape), self.support is not None)
        zero[list(self.support or ())] = False
        return zero.reshape(self.shape)


Space = Discrete | Box
