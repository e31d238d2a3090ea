"""JaxMARL's Overcooked with its own auto-reset and its full grid observation.

Its rules are those of the old dynamics with onions only: a pot starts by itself with its third ingredient.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from benchmarks.peers import peer
from benchmarks.random_play import random_play
from benchmarks.timing import Contender

NUM_AGENTS = 2
NUM_ACTIONS = 6


def contender(layout: str, num_envs: int) -> Contender:
    """Random play in `num_envs` games of 400 steps."""
    layouts = peer("jaxmarl.environments.overcooked").overcooked_layouts
    env = peer("jaxmarl").make("overcooked", layout=layouts[layout])
    stack = lambda by_agent: jnp.stack([by_agent[agent] for agent in env.agents])  # noqa: E731

    def reset(key: PRNGKeyArray) -> tuple[Any, Any]:
        obs, state = jax.vmap(env.reset)(jax.random.split(key, num_envs))
        return state, stack(obs)

    def step(key: PRNGKeyArray, state: Any, actions: Int[Array, "B A"]) -> tuple[Any, Any, Array]:
        keys = jax.random.split(key, num_envs)
        named = {agent: actions[:, seat] for seat, agent in enumerate(env.agents)}
        obs, state, rewards, _, info = jax.vmap(env.step)(keys, state, named)
        shaped = stack(info["shaped_reward"]).sum(0)
        return state, stack(obs), rewards[env.agents[0]] + shaped

    return random_play(f"jaxmarl {layout} x{num_envs}", reset, step, num_envs, NUM_AGENTS, NUM_ACTIONS)
