"""Waits beside the visible food nearest the grid's middle, or in the middle; loads only while another player joins."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import go, nowhere
from jaxscope.agents.partners.lbf._navigation import Board, either
from jaxscope.agents.partners.lbf._scene import accompanied, choose, distance, look
from jaxscope.envs.lbf import LBF, LOAD, NONE
from jaxscope.types import PyTree, View

ROLE = "training"


def act(env: LBF, memory: PyTree, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], PyTree]:
    """Without visible food it stands in the middle. No memory.

    Asks of a cooperator to come to it, for light foods too.
    """
    del key
    scene = look(env, view)
    board = Board(env.rows, env.cols)
    last = jnp.array([env.rows - 1, env.cols - 1])
    # Twice the distance to the middle: a grid of even size has its middle between cells.
    food = choose(distance(2 * scene.foods, last), scene.food_seen, scene.foods)
    goals = either(food.found, board.beside(board.at(food.cell)), board.at(last // 2))
    move, _ = go(env, scene, goals, jnp.bool_(True), nowhere(), scene.cell)
    loads = jnp.where(accompanied(scene, food.cell), jnp.int32(LOAD), jnp.int32(NONE))
    arrived = food.found & (distance(food.cell, scene.cell) == 1)
    return jnp.where(arrived, loads, move), memory
