"""Rewards divided by the running spread of discounted returns, so that one setting of a learner fits every game.

The critic's loss and its clip range are in units of the return. Rewards keep their sign, and those of one rollout their
proportions, except that none counts for more than `LARGEST` spreads: the first reward after many rollouts without one
would upset all weights. Returns that are shown are the environment's own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Float

from jaxscope.agents.moments import Moments
from jaxscope.placement import ENVIRONMENTS

#: The largest scaled reward.
LARGEST = 10.0
#: Returns whose variance is less than this share of their mean square are taken for equal: that is rounding.
_ROUNDING = 1e-9


class RewardScale(NamedTuple):
    """Statistics of the discounted return that every row has had so far in its episode."""

    running: Float[Array, " R"]  # that return, up to the last step seen
    count: Float[Array, ""]  # steps seen
    mean: Float[Array, ""]
    squares: Float[Array, ""]  # sum of squared deviations from the mean

    @property
    def moments(self) -> Moments:
        return Moments(self.count, self.mean, self.squares)

    @property
    def spread(self) -> Float[Array, ""]:
        """The standard deviation; 1 while all returns are equal."""
        variance = self.moments.variance
        varies = variance > _ROUNDING * (variance + self.mean**2)
        return jnp.where(varies, jnp.sqrt(variance), 1.0)

    def scaled(self, reward: Float[Array, "T R"]) -> Float[Array, "T R"]:
        """Rewards in units of the spread."""
        return jnp.clip(reward / self.spread, -LARGEST, LARGEST)


def begin(rows: int) -> RewardScale:
    """Nothing seen yet."""
    return RewardScale(jnp.zeros(rows), *(jnp.zeros(()) for _ in range(3)))


def partition() -> RewardScale:
    """Which axes hold environments."""
    whole: Any = PartitionSpec()
    rows: Any = PartitionSpec(ENVIRONMENTS)
    return RewardScale(running=rows, count=whole, mean=whole, squares=whole)


def observe(scale: RewardScale, reward: Float[Array, "T R"], reset: Bool[Array, "T R"], gamma: float) -> RewardScale:
    """The statistics after a rollout; `reset` says which steps begin an episode."""

    def step(running: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        reward_t, reset_t = inputs
        running = gamma * jnp.where(reset_t, 0.0, running) + reward_t
        return running, running

    running, seen = jax.lax.scan(step, scale.running, (reward, reset))
    return RewardScale(running, *scale.moments.including(seen))
