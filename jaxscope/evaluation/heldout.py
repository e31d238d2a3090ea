"""Learners with a panel of partners, from every seat."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray

from jaxscope.evaluation.pairs import PairResults, play_pairs
from jaxscope.panel import Panel, join
from jaxscope.types import Environment


@dataclass(frozen=True)
class Evaluation:
    """Team returns of R learners with P partners, the learner in each of A seats, E episodes per cell."""

    learners: tuple[str, ...]  # [R]
    partners: tuple[str, ...]  # [P]
    team_return: np.ndarray  # [R, P, A, E] undiscounted
    length: np.ndarray  # [R, P, A, E] steps
    learner_events: dict[str, np.ndarray]  # [R, P, A, E] counts of the learner's seat
    partner_events: dict[str, np.ndarray]  # [R, P, A, E] counts summed over the partners' seats
    shaping: np.ndarray | None = None  # [R, P, A, E] the part of the return that is shaping, where any is paid

    @classmethod
    def of_pairs(cls, results: PairResults, learners: Sequence[str], partners: Sequence[str]) -> Evaluation:
        """The given learners with the given partners, from pairs that hold all of theirs."""
        rows = results.rows(learners, partners)
        return cls(
            tuple(learners),
            tuple(partners),
            results.team_return[rows],
            results.length[rows],
            {name: count[rows] for name, count in results.learner_events.items()},
            {name: count[rows] for name, count in results.partner_events.items()},
            None if results.shaping is None else results.shaping[rows],
        )

    def unshaped(self) -> Evaluation:
        """The same games with the shaping left out of their returns.

        Raises:
            ValueError: the environment pays none.
        """
        if self.shaping is None:
            raise ValueError("there is no shaping to leave out")
        return dataclasses.replace(self, team_return=self.team_return - self.shaping, shaping=None)

    def per_partner(self) -> np.ndarray:
        """Mean return of every learner with every partner, seats averaged: `[R, P]`."""
        return self.team_return.mean(axis=(2, 3))

    def per_seat(self) -> np.ndarray:
        """Mean return by the learner's seat: `[R, P, A]`."""
        return self.team_return.mean(axis=3)

    def mean(self) -> np.ndarray:
        """Mean return over partners, all equally weighted: `[R]`."""
        return self.per_partner().mean(axis=1)

    def worst(self) -> np.ndarray:
        """Mean return with the worst partner: `[R]`.

        The worst partner is picked on one half of the episodes and scored on the other, and the other way round: a
        plain minimum of noisy means lies too low.
        """
        halves = self.team_return.mean(axis=2)  # [R, P, E]
        first, second = halves[..., ::2].mean(axis=-1), halves[..., 1::2].mean(axis=-1)
        rows = np.arange(len(self.learners))
        return 0.5 * (second[rows, first.argmin(axis=1)] + first[rows, second.argmin(axis=1)])

    def best_learner(self) -> np.ndarray:
        """Return of the best learner for each partner, picked and scored on different halves: `[P]`."""
        halves = self.team_return.mean(axis=2)
        first, second = halves[..., ::2].mean(axis=-1), halves[..., 1::2].mean(axis=-1)
        columns = np.arange(len(self.partners))
        return 0.5 * (second[first.argmax(axis=0), columns] + first[second.argmax(axis=0), columns])


def evaluate(
    env: Environment, learners: Panel, partners: Panel, episodes: int = 50, key: PRNGKeyArray | None = None
) -> Evaluation:
    """Let every learner play with every partner, in every seat; partners take all other seats.

    One program is compiled for the architectures in play, however many learners and partners there are.

    Args:
        episodes: per learner, partner and seat; at least 2, so that the worst partner can be picked and scored apart.
        key: the same key gives the same first states to everyone.
    """
    require_halves(episodes)
    mine, others = _renamed(learners, "learner "), _renamed(partners, "partner ")
    pairs = [(learner, partner) for learner in mine.names for partner in others.names]
    results = play_pairs(env, join(mine, others), pairs, episodes, key)
    result = Evaluation.of_pairs(results, mine.names, others.names)
    return dataclasses.replace(result, learners=learners.names, partners=partners.names)


def _renamed(panel: Panel, prefix: str) -> Panel:
    return Panel(tuple(prefix + name for name in panel.names), panel.policies, panel.population)


def require_halves(episodes: int) -> None:
    """The worst partner is picked and scored on different episodes, so there must be two."""
    if episodes < 2:
        raise ValueError(f"episodes = {episodes}: must be at least 2")
