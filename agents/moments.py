"""Mean and spread of everything seen so far, kept as sums that a rollout at a time is added to."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class Moments(NamedTuple):
    """Of arrays of one shape, entry by entry."""

    count: Float[Array, ""]  # arrays seen
    mean: Float[Array, "*o"]
    squares: Float[Array, "*o"]  # sums of squared deviations from the mean

    @property
    def variance(self) -> Float[Array, "*o"]:
        """0 while nothing was seen."""
        return self.squares / jnp.maximum(self.count, 1.0)

    def including(self, values: Float[Array, "T R *o"]) -> Moments:
        """With the arrays of a rollout too.

        Two parts are joined (Chan et al. 1979), since plain sums of squares lose their digits.
        """
        count = jnp.float32(values.shape[0] * values.shape[1])
        mean = values.mean(axis=(0, 1))
        squares = ((values - mean[None, None]) ** 2).sum(axis=(0, 1))
        total = self.count + count
        apart = mean - self.mean
        return Moments(
            total,
            self.mean + apart * (count / total),
            self.squares + squares + apart**2 * (self.count * (count / total)),
        )
