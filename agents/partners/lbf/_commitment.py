"""Keeping a food chosen once until it is known to be eaten."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, Num

from jaxscope.agents.partners.lbf._foraging import nowhere
from jaxscope.agents.partners.lbf._scene import Scene, Target, choose
from jaxscope.envs.lbf import LBF


class Commitment(NamedTuple):
    """The memory of a player that keeps its target."""

    waypoint: Int[Array, "2"]  # where it wanders to while it has no target; (-1, -1): nowhere yet
    food: Int[Array, ""]  # index of the food it has chosen; -1: none


def first_commitment(env: LBF) -> Commitment:
    """The memory before the first step of an episode."""
    del env
    return Commitment(nowhere(), jnp.int32(-1))


def keep_or_choose(scene: Scene, food: Int[Array, ""], score: Num[Array, " F"]) -> Target:
    """The food of index `food` unless it is seen to be gone; else the seen food of lowest score."""
    chosen = jnp.arange(len(scene.foods)) == food
    kept = jnp.any(chosen & ~scene.food_gone)
    new = choose(score, scene.food_seen, scene.foods)
    old_cell = jnp.sum(jnp.where(chosen[:, None], scene.foods, 0), axis=0)
    return Target(kept | new.found, jnp.where(kept, food, new.index), jnp.where(kept, old_cell, new.cell))


def remember(target: Target) -> Int[Array, ""]:
    """The index to keep: -1 where nothing was found."""
    return jnp.where(target.found, target.index, jnp.int32(-1))
