"""JaxMARL's Overcooked with its own auto-reset and its full grid observation.

Its rules are those of the old dynamics with onions only: a pot starts by itself with its third ingredient.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from benchmarks.peers import peer
from benchmarks.peers.games import Games
from benchmarks.random_play import integers, random_play
from benchmarks.timing import Contender

NUM_AGENTS = 2
NUM_ACTIONS = 6


def make_env(layout: str) -> Any:
    """One game of 400 steps."""
    layouts = peer("jaxmarl.environments.overcooked").overcooked_layouts
    return peer("jaxmarl").make("overcooked", layout=layouts[layout])


def contender(layout: str, num_envs: int) -> Contender:
    """Random play in `num_envs` games."""
    env = make_env(layout)
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

    return random_play(f"jaxmarl {layout} x{num_envs}", reset, step, num_envs, NUM_AGENTS, integers(NUM_ACTIONS))


def games(layout: str, num_envs: int) -> Games:
    """For a training peer: actors agent by agent, each paid the shared reward and its own shaped one; flat views."""
    env = make_env(layout)

    def actors(by_agent: dict[str, Array]) -> Array:
        return jnp.concatenate([by_agent[agent].reshape(num_envs, -1) for agent in env.agents])

    def reset(key: PRNGKeyArray) -> tuple[Any, Array]:
        obs, state = jax.vmap(env.reset)(jax.random.split(key, num_envs))
        return state, actors(obs)

    def step(key: PRNGKeyArray, state: Any, actions: Int[Array, " N"]) -> tuple:
        named = dict(zip(env.agents, actions.reshape(NUM_AGENTS, num_envs), strict=True))
        obs, state, rewards, dones, info = jax.vmap(env.step)(jax.random.split(key, num_envs), state, named)
        paid = actors(rewards)[:, 0] + actors(info["shaped_reward"])[:, 0]
        return state, actors(obs), paid, jnp.tile(dones["__all__"], NUM_AGENTS)

    return Games(f"jaxmarl {layout}", num_envs, NUM_AGENTS, NUM_ACTIONS, reset, step)
