"""Jumanji's LevelBasedForaging at the settings of lbforaging's `8x8-2p-3f`: 50 steps, player levels 1 to 2, no coop.

The rules are Jumanji's, not quite lbforaging's: a load addresses every adjacent food, and a move into any occupied cell
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from benchmarks.peers import peer
from benchmarks.peers.games import Games
from benchmarks.random_play import integers, random_play
from benchmarks.timing import Contender

SIZE = 8
NUM_AGENTS = 2
NUM_FOODS = 3
NUM_ACTIONS = 6
NUM_STEPS = 50


def make_env(sight: int | None = None, force_coop: bool = False) -> Any:
    """The vmapped, auto-resetting environment; `sight` None is the whole grid.

    In Jumanji 1.1.2 `VmapAutoResetWrapper` *is* `VmapWrapper(AutoResetWrapper(env))`: an older one, which reset under
    `lax.map`, was many times slower and is gone. There is no faster auto-reset in the package.
    """
    lbf = peer("jumanji.environments.routing.lbf.env")
    generator = peer("jumanji.environments.routing.lbf.generator").RandomGenerator(
        grid_size=SIZE,
        num_agents=NUM_AGENTS,
        num_food=NUM_FOODS,
        fov=SIZE if sight is None else sight,
        max_agent_level=2,
        force_coop=force_coop,
    )
    wrappers = peer("jumanji.wrappers")
    env = lbf.LevelBasedForaging(generator=generator, time_limit=NUM_STEPS)
    return wrappers.VmapWrapper(wrappers.AutoResetWrapper(env))


def contender(num_envs: int, sight: int | None = None, num_steps: int | None = None, seed: int = 0) -> Contender:
    """Random play in `num_envs` games. Only the view is read, so the action mask costs Jumanji nothing."""
    env = make_env(sight)

    def reset(key: PRNGKeyArray) -> tuple[Any, Any]:
        state, timestep = env.reset(jax.random.split(key, num_envs))
        return state, timestep.observation.agents_view

    def step(_: PRNGKeyArray, state: Any, actions: Int[Array, "B A"]) -> tuple[Any, Any, Array]:
        state, timestep = env.step(state, actions)
        return state, timestep.observation.agents_view, timestep.reward

    name = f"jumanji {_prefix(sight)}{SIZE}x{SIZE}-{NUM_AGENTS}p-{NUM_FOODS}f x{num_envs}"
    return random_play(name, reset, step, num_envs, NUM_AGENTS, integers(NUM_ACTIONS), num_steps, seed)


def contenders(
    num_envs: Sequence[int] = (64, 1024, 4096), sights: Sequence[int | None] = (None, 2)
) -> dict[tuple[int | None, int], Contender]:
    """The contenders by `(sight, num_envs)`."""
    return {(sight, size): contender(size, sight) for sight in sights for size in num_envs}


def games(num_envs: int, sight: int | None = None) -> Games:
    """For a training peer: actors game by game, each paid the sum of both rewards."""
    env = make_env(sight)
    actors = lambda views: views.reshape(-1, views.shape[-1]).astype(jnp.float32)  # noqa: E731

    def reset(key: PRNGKeyArray) -> tuple[Any, Array]:
        state, timestep = env.reset(jax.random.split(key, num_envs))
        return state, actors(timestep.observation.agents_view)

    def step(_: PRNGKeyArray, state: Any, actions: Int[Array, " N"]) -> tuple:
        state, timestep = env.step(state, actions.reshape(num_envs, -1))
        rows = lambda of_game: jnp.repeat(of_game, NUM_AGENTS)  # noqa: E731
        view = actors(timestep.observation.agents_view)
        return state, view, rows(timestep.reward.sum(axis=1)), rows(timestep.last())

    name = "jumanji, whole grid" if sight is None else f"jumanji, sight {sight}"
    return Games(name, num_envs, NUM_AGENTS, NUM_ACTIONS, reset, step)


def _prefix(sight: int | None) -> str:
    return "" if sight is None else f"{sight}s-"
