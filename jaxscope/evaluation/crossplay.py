"""Cross-play: everybody with everybody, in all ordered pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray

from jaxscope.evaluation.pairs import play
from jaxscope.panel import Panel
from jaxscope.types import Environment


@dataclass(frozen=True)
class CrossPlay:
    """Team returns of all ordered pairs of K members."""

    names: tuple[str, ...]
    team_return: np.ndarray  # [K, K, E]: the row's member in seat 0, the column's in every other seat

    def matrix(self) -> np.ndarray:
        """Mean return `[K, K]`, not symmetric: the seats differ."""
        return self.team_return.mean(axis=-1)

    def self_play(self) -> float:
        """Mean return of the members with themselves."""
        return float(np.diag(self.matrix()).mean())

    def cross_play(self) -> float:
        """Mean return over pairs of different members."""
        matrix = self.matrix()
        different = ~np.eye(len(matrix), dtype=bool)
        return float(matrix[different].mean()) if different.any() else float("nan")


def crossplay(env: Environment, panel: Panel, episodes: int = 50, key: PRNGKeyArray | None = None) -> CrossPlay:
    """Play all ordered pairs of the panel's members.

    Args:
        episodes: per ordered pair, at least 1.
    """
    if episodes < 1:
        raise ValueError(f"episodes = {episodes}: must be at least 1")
    k = len(panel.names)
    teams = [[row] + [column] * (env.num_agents - 1) for row in range(k) for column in range(k)]
    outcome = play(env, panel, teams, episodes, key)
    return CrossPlay(panel.names, outcome.team_return.reshape(k, k, episodes))
