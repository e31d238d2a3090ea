"""Discrete actions for environments whose actions are arrays of real numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from jaxscope.spaces import Box, Discrete, Space
from jaxscope.types import Actions, Environment, Observations, PyTree, Renders

PREFIX = "discrete:"


@dataclass(frozen=True)
class DiscreteActions(Environment):
    """`inner` with `Discrete(1 + 2 d)` actions, where its own are `d` numbers in [low, high]; all else is its own.

    Action 0 stays: every number is in the middle of the bounds. Action 1 + 2 i has number i at `low` and action 2 + 2 i
    at `high`, the others in the middle. For a thrust (x, y) that is the order of the multi-agent particle environments:
    stay, left, right, down, up. `jaxscope.make("discrete:NAME")` makes it.

    Raises:
        ValueError: the actions of `inner` are discrete already, or not bounded real numbers.
    """

    inner: Environment

    def __post_init__(self) -> None:
        space = self.inner.action_space()
        if isinstance(space, Discrete):
            raise ValueError(f"{self.name}: {self.inner.name} has discrete actions already, {space.n} of them")
        if space.integer or not (math.isfinite(space.low) and math.isfinite(space.high)):
            raise ValueError(f"{self.name}: the actions of {self.inner.name} must be bounded real numbers, not {space}")

    @property
    def name(self) -> str:
        return PREFIX + self.inner.name

    @property
    def num_agents(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.num_agents

    @property
    def horizon(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.horizon

    @property
    def shared_reward(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.shared_reward

    @property
    def pays_shaping(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.pays_shaping

    @property
    def outcomes(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.outcomes

    @property
    def agents(self) -> tuple[str, ...]:
        return self.inner.agents

    def observation_space(self, agent: str | None = None) -> Space:
        return self.inner.observation_space(agent)

    def action_space(self, agent: str | None = None) -> Discrete:
        return Discrete(1 + 2 * math.prod(self.inner.action_space(agent).shape))

    def reset(self, key: PRNGKeyArray) -> tuple[Observations, PyTree]:
        return self.inner.reset(key)

    def step_env(self, key: PRNGKeyArray, state: PyTree, actions: Actions) -> tuple:
        return self.inner.step_env(key, state, {agent: self.numbers(actions[agent]) for agent in self.agents})

    def numbers(self, action: Int[Array, ""]) -> Float[Array, "*a"]:
        """The action of `inner` that `action` stands for."""
        space = cast(Box, self.inner.action_space())
        moved = jnp.arange(math.prod(space.shape)) == (action - 1) // 2
        extreme = jnp.where(action % 2 == 1, jnp.float32(space.low), jnp.float32(space.high))
        return jnp.where(moved, extreme, jnp.float32((space.low + space.high) / 2)).reshape(space.shape)

    def team_reward(self, rewards: dict[str, Array]) -> Array:
        return self.inner.team_reward(rewards)

    def team_shaping(self, info: dict[str, Any]) -> Array:
        return self.inner.team_shaping(info)

    def get_obs(self, state: PyTree) -> Observations:
        return self.inner.get_obs(state)

    def by_seat(self, obs: Observations, state: PyTree) -> Shaped[Array, "A ..."]:
        return self.inner.by_seat(obs, state)


@dataclass(frozen=True)
class _Drawn(DiscreteActions):
    """One whose inner environment draws itself."""

    def render(self, state: PyTree) -> Any:
        return cast(Renders, self.inner).render(state)


def discrete(inner: Environment) -> DiscreteActions:
    """`inner` with discrete actions; it can be drawn where `inner` can.

    Raises:
        ValueError: see `DiscreteActions`.
    """
    return _Drawn(inner) if isinstance(inner, Renders) else DiscreteActions(inner)
