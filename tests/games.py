"""Small games for tests of the learner: each makes one truth about rollouts visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxscope.spaces import Box, Discrete
from jaxscope.types import Environment


class ClockState(NamedTuple):
    time: Array
    length: Array  # of this episode


@dataclass(frozen=True)
class Clock(Environment):
    """Pays 1 a step whatever is done. An episode ends by itself after a drawn number of steps, or at the time limit.

    The observation is 1 with the seat and, if `shows_time`, the share of the horizon that has passed.
    """

    horizon: int = 5
    shortest: int = 99
    longest: int = 99
    num_agents: int = 2
    shows_time: bool = False
    shared_reward = True

    @property
    def name(self) -> str:
        return f"clock/{self.horizon}"

    def observation_space(self, agent=None):
        return Box(0.0, 2.0, (3,))

    def action_space(self, agent=None):
        return Discrete(3)

    def reset(self, key):
        length = jax.random.randint(key, (), self.shortest, self.longest + 1)
        state = ClockState(jnp.zeros((), jnp.int32), length)
        return self.get_obs(state), state

    def step_env(self, key, state, actions):
        del key
        state = ClockState(state.time + 1, state.length)
        terminated = state.time >= state.length
        truncated = (state.time >= self.horizon) & ~terminated
        done = terminated | truncated
        obs = self.get_obs(state)
        info = {
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": obs,
            "events": {"acted": jnp.stack([actions[agent] for agent in self.agents]).astype(jnp.float32)},
        }
        rewards = dict.fromkeys(self.agents, jnp.ones(()))
        return obs, state, rewards, dict.fromkeys(self.agents, done) | {"__all__": done}, info

    def get_obs(self, state):
        passed = jnp.where(self.shows_time, state.time / self.horizon, 0.0)
        return {agent: jnp.stack([jnp.ones(()), jnp.asarray(float(s)), passed]) for s, agent in enumerate(self.agents)}


@dataclass(frozen=True)
class Steered(Clock):
    """The same, whose actions are vectors of real numbers."""

    def action_space(self, agent=None):
        return Box(-0.5, 1.5, (2,))

    def step_env(self, key, state, actions):
        chosen = {agent: jnp.linalg.norm(actions[agent]) for agent in self.agents}
        return super().step_env(key, state, chosen)
