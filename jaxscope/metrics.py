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
    shaping: Float[Array, ""] | None = None  # the part of the return that is shaping, where the environment pays any

    @classmethod
    def of(
        cls,
        counted: Bool[Array, "T B"],
        team_return: Float[Array, "T B"],
        length: Int[Array, "T B"],
        shaping: Float[Array, "T B"] | None = None,
    ) -> EpisodeTotals:
        """Totals over the entries where an episode ended that may be counted."""
        total = lambda values: jnp.where(counted, values, 0).sum()  # noqa: E731
        return cls(counted.sum(), total(team_return), total(length), None if shaping is None else total(shaping))


class Metrics(NamedTuple):
    """One iteration. Names become those of `metrics.jsonl`."""

    means: dict[str, Float[Array, ""]]  # averaged over iterations; a value that is not finite stops training
    episodes: EpisodeTotals
    partners: dict[str, Float[Array, " K"]]  # per partner, as they stand after the iteration; NaN: nothing to show
