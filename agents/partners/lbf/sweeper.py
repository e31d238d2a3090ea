"""Visits the visible foods in reading order and loads each until it is eaten; seeing none, combs the grid in lanes."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import go, is_somewhere
from jaxscope.agents.partners.lbf._navigation import Board
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF, LOAD
from jaxscope.types import View

ROLE = "training"


class Memory(NamedTuple):
    leg: Int[Array, ""]  # which lane end it walks to, counted over the whole tour


def initial_memory(env: LBF) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory(jnp.int32(0))


def act(env: LBF, memory: Memory, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Memory]:
    """The lanes run west to east and back, from the north, so far apart that it sees every cell once.

    Asks of a cooperator to see that distance means nothing to it, and to be at the first food in the order.
    """
    del key
    scene = look(env, view)
    board = Board(env.rows, env.cols)
    reading_order = scene.foods[:, 0] * env.cols + scene.foods[:, 1]
    food = choose(reading_order, scene.food_seen, scene.foods)
    at_end = distance(_lane_end(env, memory.leg), scene.cell) == 0
    leg = memory.leg + (at_end & ~food.found)
    end = _lane_end(env, leg)
    move, ahead = go(env, scene, board.beside(board.at(food.cell)), food.found, end, end)
    leg = leg + ~is_somewhere(ahead)  # blocked: on to the next
    arrived = food.found & (distance(food.cell, scene.cell) == 1)
    return jnp.where(arrived, jnp.int32(LOAD), move), Memory(leg)


def _lane_end(env: LBF, leg: Int[Array, ""]) -> Int[Array, "2"]:
    """The tour: west and east end of the first lane, east and west end of the second, and so on, then all again."""
    spacing = 2 * env.window + 1
    lanes = -(-env.rows // spacing)
    leg = leg % (2 * lanes)
    row = jnp.minimum(leg // 2 * spacing + env.window, env.rows - 1)
    return jnp.stack([row, jnp.where((leg + 1) // 2 % 2 == 1, env.cols - 1, 0)])
