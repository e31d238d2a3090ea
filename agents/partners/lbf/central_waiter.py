"""Waits beside the visible food nearest the grid's middle, or in the middle; loads only while another player joins."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, load_on_arrival, nowhere, walk
from jaxscope.agents.partners.lbf._scene import accompanied, choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import PyTree, View

ROLE = "training"


def act(env: LBF, memory: PyTree, view: View, key: PRNGKeyArray) -> Walking:
    """Without visible food it stands in the middle. No memory.

    Asks of a cooperator to come to it, for light foods too.
    """
    scene = look(env, view)
    last = jnp.array([env.rows - 1, env.cols - 1])
    # Twice the distance to the middle: a grid of even size has its middle between cells.
    food = choose(distance(2 * scene.foods, last), scene.food_seen, scene.foods)
    goal = jnp.where(food.found, food.cell, last // 2)
    step = yield walk(env, goal, food.found, True, nowhere(), key)
    return load_on_arrival(step, ready=accompanied(scene, food.cell)), memory
