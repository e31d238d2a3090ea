"""Heads for the visible food, else the corner, farthest from its teammate; stops and loads at any food on the way."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Waypoint, draw_cell, first_waypoint, go
from jaxscope.agents.partners.lbf._navigation import Board, either
from jaxscope.agents.partners.lbf._scene import choose, distance, look, nearest_player
from jaxscope.envs.lbf import LBF, LOAD
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Waypoint]:
    """With nobody in sight it takes the food nearest to itself, or wanders.

    Asks of a cooperator not to chase it: coming closer sends it away, and only at a food can it be joined.
    """
    scene = look(env, view)
    board = Board(env.rows, env.cols)
    near = distance(scene.foods, scene.cell)
    mate = nearest_player(scene)
    score = jnp.where(mate.found, -distance(scene.foods, mate.cell), near)
    score = jnp.where(near == 1, -(env.rows + env.cols), score)
    food = choose(score, scene.food_seen, scene.foods)
    last = jnp.array([env.rows - 1, env.cols - 1])
    corner = jnp.where(2 * mate.cell <= last, last, 0)
    goals = either(food.found, board.beside(board.at(food.cell)), board.at(corner))
    move, waypoint = go(env, scene, goals, food.found | mate.found, memory.cell, draw_cell(env, key))
    arrived = food.found & (distance(food.cell, scene.cell) == 1)
    return jnp.where(arrived, jnp.int32(LOAD), move), Waypoint(waypoint)
