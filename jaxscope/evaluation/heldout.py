"""Learners with a panel of partners, from every seat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from jaxscope.evaluation.play import play_teams
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

    def select(self, learners: Sequence[str], partners: Sequence[str]) -> Evaluation:
        """The part that concerns the given learners and partners, in the given order."""
        rows = [self.learners.index(name) for name in learners]
        columns = [self.partners.index(name) for name in partners]
        part = lambda x: x[np.ix_(rows, columns)]  # noqa: E731
        return Evaluation(
            tuple(learners),
            tuple(partners),
            part(self.team_return),
            part(self.length),
            {name: part(count) for name, count in self.learner_events.items()},
            {name: part(count) for name, count in self.partner_events.items()},
        )

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
    if episodes < 2:
        raise ValueError(f"episodes = {episodes}: must be at least 2")
    both = join(_renamed(learners, "learner "), _renamed(partners, "partner "))
    learner_ids = [both.names.index(f"learner {name}") for name in learners.names]
    partner_ids = [both.names.index(f"partner {name}") for name in partners.names]
    teams = [
        [learner if seat == own else partner for seat in range(env.num_agents)]
        for learner in learner_ids
        for partner in partner_ids
        for own in range(env.num_agents)
    ]
    outcome = play(env, both, teams, episodes, key)
    shape = (len(learner_ids), len(partner_ids), env.num_agents, episodes)
    own = np.arange(env.num_agents).reshape(1, 1, -1, 1, 1)
    by_seat = {name: count.reshape(*shape, env.num_agents) for name, count in outcome.events.items()}
    learner_events = {
        name: np.take_along_axis(count, np.broadcast_to(own, (*shape, 1)), axis=-1)[..., 0]
        for name, count in by_seat.items()
    }
    return Evaluation(
        learners=learners.names,
        partners=partners.names,
        team_return=outcome.team_return.reshape(shape),
        length=outcome.length.reshape(shape),
        learner_events=learner_events,
        partner_events={name: count.sum(axis=-1) - learner_events[name] for name, count in by_seat.items()},
    )


class Played(NamedTuple):
    """`Outcome` on the host."""

    team_return: np.ndarray  # [C, E]
    length: np.ndarray  # [C, E]
    events: dict[str, np.ndarray]  # [C, E, A] each


def play(
    env: Environment, panel: Panel, teams: Sequence[Sequence[int]], episodes: int, key: PRNGKeyArray | None
) -> Played:
    """`play_teams` on the members of a panel, each team a member per seat."""
    key = jax.random.key(0) if key is None else key
    ids = jnp.asarray(np.asarray(teams, np.int32))
    outcome = play_teams(env, panel.policies, panel.population, ids, episodes, key)
    events = {name: np.asarray(count) for name, count in outcome.events.items()}
    return Played(np.asarray(outcome.team_return), np.asarray(outcome.length), events)


def _renamed(panel: Panel, prefix: str) -> Panel:
    return Panel(tuple(prefix + name for name in panel.names), panel.policies, panel.population)
