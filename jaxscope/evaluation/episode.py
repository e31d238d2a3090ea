"""Episodes on disk: who did what, from which first state, so that a game can be played again exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from jaxscope.files import write_text
from jaxscope.make import make
from jaxscope.types import Environment, PyTree

FORMAT = 1


@dataclass(frozen=True)
class Episode:
    """One episode: the environment, the root of its randomness, and the actions of every seat."""

    env: str
    seed: int
    seats: tuple[str, ...]  # who played, [A]
    actions: tuple[tuple[Any, ...], ...]  # [T, A]
    team_return: float  # undiscounted

    def save(self, path: Path) -> None:
        write_text(path, json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Episode:
        """The episode in a file.

        Raises:
            ValueError: the file is missing or holds no episode.
        """
        try:
            record = json.loads(path.read_text())
            if record.pop("format") != FORMAT:
                raise ValueError("it has another format")
            actions = tuple(tuple(row) for row in record.pop("actions"))
            episode = cls(**record | {"seats": tuple(record["seats"]), "actions": actions})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} holds no episode: {error}") from error
        words = (episode.env, *episode.seats)
        numbers = isinstance(episode.seed, int) and isinstance(episode.team_return, int | float)
        if not (all(isinstance(word, str) for word in words) and numbers and 0 <= episode.seed < 2**32):
            raise ValueError(f"{path} holds no episode: env, seed, seats or team_return is not what it should be")
        if any(len(row) != len(episode.seats) for row in actions):
            raise ValueError(f"{path} holds no episode: an entry of actions is not one for each of the seats")
        return episode


def first_state(env: Environment, seed: int) -> tuple[dict, PyTree]:
    """The first observations and state of the episode with this root."""
    return env.reset(jax.random.fold_in(jax.random.key(seed), 0))


def step_key(seed: int, time: int) -> PRNGKeyArray:
    """The key of the step from `time` on."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), time)


def replay(episode: Episode) -> tuple[Environment, list[PyTree], np.ndarray]:
    """Play an episode again: the environment, its T + 1 states, and the team rewards `[T]`.

    Raises:
        ValueError: the outcome is another one: the environment is not what it was.
    """
    env = make(episode.env)
    if len(episode.seats) != env.num_agents:
        raise ValueError(f"the episode has {len(episode.seats)} seats, and {episode.env} has {env.num_agents}")
    step = jax.jit(env.step_env)
    _, state = first_state(env, episode.seed)
    states, rewards = [state], []
    for time, row in enumerate(episode.actions):
        _, state, by_agent, _, _ = step(step_key(episode.seed, time), state, named_actions(env, row))
        states.append(state)
        rewards.append(float(env.team_reward(by_agent)))
    if not np.isclose(sum(rewards), episode.team_return, atol=1e-4):
        raise ValueError(
            f"the return of this episode in {episode.env} was {episode.team_return:g} and is {sum(rewards):g} when "
            "it is played again: the environment has changed since"
        )
    return env, states, np.asarray(rewards)


def named_actions(env: Environment, row: Sequence[Any]) -> dict[str, jax.Array]:
    """Actions by agent from those in seat order."""
    dtype = env.action_space().dtype
    return {agent: jnp.asarray(action, dtype) for agent, action in zip(env.agents, row, strict=True)}
