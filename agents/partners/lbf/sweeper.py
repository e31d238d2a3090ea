"""Visits the visible foods in reading order and loads each until it is eaten; seeing none, combs the grid in lanes."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, load_on_arrival, nowhere, walk
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF, NONE
from jaxscope.types import View

ROLE = "training"


class Memory(NamedTuple):
    leg: Int[Array, ""]  # which lane end it walks to, counted over the whole tour


def initial_memory(env: LBF) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory(jnp.int32(0))


def act(env: LBF, memory: Memory, view: View, key: PRNGKeyArray) -> Walking:
    """The lanes run west to east and back, from the north, so far apart that it sees every cell once.

    Asks of a cooperator to see that distance means nothing to it, and to be at the first food in the order.
    """
    scene = look(env, view)
    reading_order = scene.foods[:, 0] * env.cols + scene.foods[:, 1]
    food = choose(reading_order, scene.food_seen, scene.foods)
    at_end = distance(_lane_end(env, memory.leg), scene.cell) == 0
    leg = memory.leg + (at_end & ~food.found)
    goal = jnp.where(food.found, food.cell, _lane_end(env, leg))
    step = yield walk(env, goal, food.found, True, nowhere(), key)
    leg = leg + (~food.found & (step.action == NONE))  # blocked: on to the next
    return load_on_arrival(step), Memory(leg)


def _lane_end(env: LBF, leg: Int[Array, ""]) -> Int[Array, "2"]:
    """The tour: west and east end of the first lane, east and west end of the second, and so on, then all again."""
    spacing = 2 * env.window + 1
    lanes = -(-env.rows // spacing)
    leg = leg % (2 * lanes)
    row = jnp.minimum(leg // 2 * spacing + env.window, env.rows - 1)
    return jnp.stack([row, jnp.where((leg + 1) // 2 % 2 == 1, env.cols - 1, 0)])
