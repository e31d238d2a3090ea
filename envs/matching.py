"""The matching game: all agents name one of n conventions, and are paid when they name the same.

The smallest game with several equally good conventions, hence the smallest in which agents that trained apart can fail
to cooperate. With several rounds, agents see what was named in the round before and can adapt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.spaces import Box, Discrete
from jaxscope.types import Actions, Environment, Observations

EXAMPLES = ("matching/4", "matching/4-8r")


class State(NamedTuple):
    """The round, and what every agent named in the round before."""

    named: Int[Array, " A"]  # -1 before the first round
    time: Int[Array, ""]


@dataclass(frozen=True)
class Matching(Environment):
    """`rounds` rounds of naming one of `conventions`; the team is paid 1 / rounds for each round in agreement.

    Observation: for every agent, oneself first and then the others in turn, a one-hot of the convention named last
    (zeros before the first round).
    """

    conventions: int = 4
    rounds: int = 1
    num_agents: int = 2
    shared_reward = True

    def __post_init__(self) -> None:
        for field, least in (("conventions", 2), ("rounds", 1), ("num_agents", 2)):
            if getattr(self, field) < least:
                raise ValueError(f"matching: {field} = {getattr(self, field)} must be at least {least}")

    @property
    def horizon(self) -> int:
        return self.rounds

    @property
    def name(self) -> str:
        rounds = "" if self.rounds == 1 else f"-{self.rounds}r"
        players = "" if self.num_agents == 2 else f"-{self.num_agents}p"
        return f"matching/{self.conventions}{rounds}{players}"

    def observation_space(self, agent: str | None = None) -> Box:
        del agent
        return Box(0.0, 1.0, (self.num_agents * self.conventions,))

    def action_space(self, agent: str | None = None) -> Discrete:
        del agent
        return Discrete(self.conventions)

    def reset(self, key: PRNGKeyArray) -> tuple[Observations, State]:
        del key
        state = State(jnp.full(self.num_agents, -1, jnp.int32), jnp.zeros((), jnp.int32))
        return self.get_obs(state), state

    def step_env(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple:
        del key
        named = jnp.stack([jnp.asarray(actions[agent], jnp.int32) for agent in self.agents])
        state = State(named, state.time + 1)
        agreed = jnp.all(named == named[0])
        reward = agreed / self.rounds
        over = state.time >= self.rounds
        obs = self.get_obs(state)
        info = {
            "terminated": over,
            "truncated": jnp.zeros((), bool),
            "final_observation": obs,
            "events": {"agreed": jnp.full(self.num_agents, agreed, jnp.float32)},
        }
        dones = dict.fromkeys(self.agents, over) | {"__all__": over}
        return obs, state, dict.fromkeys(self.agents, reward), dones, info

    def get_obs(self, state: State) -> Observations:
        one_hot = jax.nn.one_hot(state.named, self.conventions)  # [A, n]; -1 gives zeros
        return {agent: jnp.roll(one_hot, -seat, axis=0).reshape(-1) for seat, agent in enumerate(self.agents)}


def parse(variant: str) -> Matching:
    """The game of a name such as `4`, `4-8r` or `4-8r-3p`: conventions, rounds, players."""
    match = re.fullmatch(r"(\d+)(?:-(\d+)r)?(?:-(\d+)p)?", variant)
    if match is None:
        raise ValueError(
            f"matching has no variant {variant!r}; write conventions, then rounds and players: 4, 4-8r, 4-8r-3p"
        )
    conventions, rounds, players = match.groups()
    return Matching(int(conventions), int(rounds or 1), int(players or 2))
