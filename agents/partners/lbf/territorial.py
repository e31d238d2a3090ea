"""Keeps to the west or east half where it started: loads the nearest visible food of that half, else patrols it."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, is_somewhere, load_on_arrival, nowhere, walk
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"


class Memory(NamedTuple):
    waypoint: Int[Array, "2"]  # where it patrols to; (-1, -1): nowhere yet
    home: Int[Array, "2"]  # the cell it started on; (-1, -1) before the first step


def initial_memory(env: LBF) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory(nowhere(), nowhere())


def act(env: LBF, memory: Memory, view: View, key: PRNGKeyArray) -> Walking:
    """A middle column belongs to the east half. It may cross the border on a shortest walk, never for a food there.

    Asks of a cooperator to serve the other half, and to come over for heavy foods.
    """
    scene = look(env, view)
    home = jnp.where(is_somewhere(memory.home), memory.home, scene.cell)
    border = env.cols // 2
    in_west = home[1] < border
    mine = scene.food_seen & ((scene.foods[:, 1] < border) == in_west)
    food = choose(distance(scene.foods, scene.cell), mine, scene.foods)
    west, east = jnp.where(in_west, 0, border), jnp.where(in_west, border, env.cols)
    step = yield walk(env, food.cell, True, food.found, memory.waypoint, key, west, east)
    return load_on_arrival(step), Memory(step.waypoint, home)
