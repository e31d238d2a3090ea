"""JaxMARL's particle environments with its own auto-reset and continuous actions.

Nearest to Rendezvous is its spread, whose agents collide and are paid by their distances; nearest to Predator-Prey its
tag, where prey are agents that take actions like all others, and are never removed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from benchmarks.peers import peer
from benchmarks.random_play import random_play, reals
from benchmarks.timing import Contender


class Game(NamedTuple):
    name: str  # JaxMARL's
    options: dict[str, int]


SPREAD = Game("MPE_simple_spread_v3", {"num_agents": 2, "num_landmarks": 4})
TAG = Game("MPE_simple_tag_v3", {"num_adversaries": 2, "num_good_agents": 5, "num_obs": 0})


def make_env(game: Game, horizon: int) -> Any:
    """One game of `horizon` steps: these environments look at their step counter before they raise it."""
    return peer("jaxmarl").make(game.name, **game.options, action_type="Continuous", max_steps=horizon - 1)


def contender(game: Game, num_envs: int, horizon: int) -> Contender:
    """Random play in `num_envs` games of `horizon` steps; all bodies that are agents act."""
    env = make_env(game, horizon)
    (size,) = {env.action_space(agent).shape[0] for agent in env.agents}

    def reset(key: PRNGKeyArray) -> tuple[Any, Any]:
        obs, state = jax.vmap(env.reset)(jax.random.split(key, num_envs))
        return state, obs

    def step(key: PRNGKeyArray, state: Any, actions: Float[Array, "B A a"]) -> tuple[Any, Any, Array]:
        keys = jax.random.split(key, num_envs)
        named = {agent: actions[:, seat] for seat, agent in enumerate(env.agents)}
        obs, state, rewards, _, _ = jax.vmap(env.step)(keys, state, named)
        return state, obs, jnp.stack([rewards[agent] for agent in env.agents]).sum(0)

    name = f"jaxmarl {game.name} x{num_envs}"
    return random_play(name, reset, step, num_envs, env.num_agents, reals(size, 0.0, 1.0))
