"""Stands beside the visible food nearest to the grid's middle and loads only while another player stands there too."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Waypoint, approach, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import accompanied, choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Waypoint]:
    """Asks of a cooperator to meet it in the middle, for light foods too."""
    scene = look(env, view)
    # Twice the distance to the middle: a grid of even size has its middle between cells.
    score = distance(2 * scene.foods, jnp.array([env.rows - 1, env.cols - 1]))
    target = choose(score, scene.food_seen, scene.foods)
    step = approach(env, scene, target, memory.cell, key)
    return load_on_arrival(step, ready=accompanied(scene, target.cell)), Waypoint(step.waypoint)
