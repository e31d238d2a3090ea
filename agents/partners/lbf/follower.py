"""Stays beside its teammate and loads only foods that the teammate stands beside."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._company import Company, first_company, forget_if_empty, recall
from jaxscope.agents.partners.lbf._foraging import draw_cell, go, is_somewhere
from jaxscope.agents.partners.lbf._navigation import Board, either
from jaxscope.agents.partners.lbf._scene import choose, distance, look, nearest_player
from jaxscope.envs.lbf import LBF, LOAD
from jaxscope.types import View

ROLE = "training"
initial_memory = first_company


def act(env: LBF, memory: Company, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Company]:
    """Goes to the food beside the teammate, else to the teammate, else to where it last saw it, else wanders.

    Asks of a cooperator to lead: to choose the foods for both, and to stay at heavy ones.
    """
    scene = look(env, view)
    board = Board(env.rows, env.cols)
    mate = nearest_player(scene)
    shared = scene.food_seen & mate.found & (distance(scene.foods, mate.cell) == 1)
    food = choose(distance(scene.foods, scene.cell), shared, scene.foods)
    last_seen = forget_if_empty(scene, recall(scene, memory.last_seen))
    beside = board.beside(board.at(jnp.where(food.found, food.cell, mate.cell)))
    goals = either(mate.found, beside, board.at(last_seen))
    move, waypoint = go(env, scene, goals, is_somewhere(last_seen), memory.waypoint, draw_cell(env, key))
    action = jnp.where(food.found & (distance(food.cell, scene.cell) == 1), jnp.int32(LOAD), move)
    return action, Company(waypoint, last_seen)
