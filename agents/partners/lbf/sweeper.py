"""Visits the visible foods in reading order, row by row from the north-west, and loads each until it is eaten."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Waypoint, approach, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import choose, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Waypoint]:
    """Asks of a cooperator to see that distance means nothing to it, and to be at the first food in the order."""
    scene = look(env, view)
    reading_order = scene.foods @ jnp.array([env.cols, 1])
    step = approach(env, scene, choose(reading_order, scene.food_seen, scene.foods), memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
