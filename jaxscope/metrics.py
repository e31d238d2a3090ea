"""What an iteration of training says about itself, in a form that needs no list of names elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class EpisodeTotals(NamedTuple):
    """Sums over the episodes that ended; the host divides, and shows nothing where none did."""

    count: Int[Array, ""]
    team_return: Float[Array, ""]  # undiscounted
    length: Int[Array, ""]

    @classmethod
    def of(
        cls, counted: Bool[Array, "T B"], team_return: Float[Array, "T B"], length: Int[Array, "T B"]
    ) -> EpisodeTotals:
        """Totals over the entries where an episode ended that may be counted."""
        return cls(counted.sum(), jnp.where(counted, team_return, 0.0).sum(), jnp.where(counted, length, 0).sum())


class Metrics(NamedTuple):
    """One iteration. Names become those of `metrics.jsonl`."""

    means: dict[str, Float[Array, ""]]  # averaged over iterations; a value that is not finite stops training
    episodes: EpisodeTotals
    partners: dict[str, Float[Array, " K"]]  # per partner, as they stand after the iteration; NaN: nothing to show
