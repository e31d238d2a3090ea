"""Heads for the visible food farthest from its teammate, but loads any food that it comes to stand beside."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Waypoint, approach, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import choose, distance, look, nearest_player
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Waypoint]:
    """With nobody in sight it takes the food nearest to itself.

    Asks of a cooperator not to chase it: coming closer sends it away, and only at a food can it be joined.
    """
    scene = look(env, view)
    near = distance(scene.foods, scene.cell)
    mate = nearest_player(scene)
    score = jnp.where(mate.found, -distance(scene.foods, mate.cell), near)
    score = jnp.where(near == 1, -(env.rows + env.cols), score)
    step = approach(env, scene, choose(score, scene.food_seen, scene.foods), memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
