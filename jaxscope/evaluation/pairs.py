"""Learners with partners, pair by pair and from every seat: any set of pairs in one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from jaxscope.evaluation.play import play_teams
from jaxscope.panel import Panel
from jaxscope.types import Environment

Pair = tuple[str, str]  # a learner and the partner in all other seats


@dataclass(frozen=True)
class PairResults:
    """Team returns of N pairs, the learner in each of A seats, E episodes each."""

    index: dict[Pair, int]  # [N]
    team_return: np.ndarray  # [N, A, E] undiscounted
    shaping: np.ndarray | None  # [N, A, E] the part of it that is shaping, where the environment pays any
    length: np.ndarray  # [N, A, E] steps
    learner_events: dict[str, np.ndarray]  # [N, A, E] counts of the learner's seat
    partner_events: dict[str, np.ndarray]  # [N, A, E] counts summed over the partners' seats

    def rows(self, learners: Sequence[str], partners: Sequence[str]) -> np.ndarray:
        """Where every learner with every partner is found: `[R, P]`."""
        return np.array([[self.index[learner, partner] for partner in partners] for learner in learners])


def play_pairs(
    env: Environment, panel: Panel, pairs: Sequence[Pair], episodes: int, key: PRNGKeyArray | None = None
) -> PairResults:
    """Let members of a panel play in pairs, each different pair once, from every seat.

    Args:
        pairs: by name; repeated ones are played once.
        episodes: per pair and seat.
        key: the same key gives the same first states to everyone.
    """
    different = list(dict.fromkeys(pairs))
    member = {name: index for index, name in enumerate(panel.names)}
    seats = range(env.num_agents)
    teams = [
        [member[learner] if seat == own else member[partner] for seat in seats]
        for learner, partner in different
        for own in seats
    ]
    outcome = play(env, panel, teams, episodes, key)
    shape = (len(different), env.num_agents, episodes)
    own = np.arange(env.num_agents).reshape(1, -1, 1, 1)
    by_seat = {name: count.reshape(*shape, env.num_agents) for name, count in outcome.events.items()}
    learner_events = {
        name: np.take_along_axis(count, np.broadcast_to(own, (*shape, 1)), axis=-1)[..., 0]
        for name, count in by_seat.items()
    }
    return PairResults(
        index={pair: number for number, pair in enumerate(different)},
        team_return=outcome.team_return.reshape(shape),
        shaping=outcome.shaping.reshape(shape) if env.pays_shaping else None,
        length=outcome.length.reshape(shape),
        learner_events=learner_events,
        partner_events={name: count.sum(axis=-1) - learner_events[name] for name, count in by_seat.items()},
    )


class Played(NamedTuple):
    """`Outcome` on the host."""

    team_return: np.ndarray  # [C, E]
    shaping: np.ndarray  # [C, E]
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
    return Played(np.asarray(outcome.team_return), np.asarray(outcome.shaping), np.asarray(outcome.length), events)
