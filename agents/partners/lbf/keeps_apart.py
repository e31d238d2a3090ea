"""Heads for the visible food, else the corner, farthest from its teammate; stops and loads at any food on the way."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, Waypoint, first_waypoint, load_on_arrival, walk
from jaxscope.agents.partners.lbf._scene import choose, distance, look, nearest_player
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> Walking:
    """With nobody in sight it takes the food nearest to itself, or wanders.

    Asks of a cooperator not to chase it: coming closer sends it away, and only at a food can it be joined.
    """
    scene = look(env, view)
    near = distance(scene.foods, scene.cell)
    mate = nearest_player(scene)
    score = jnp.where(mate.found, -distance(scene.foods, mate.cell), near)
    score = jnp.where(near == 1, -(env.rows + env.cols), score)
    food = choose(score, scene.food_seen, scene.foods)
    last = jnp.array([env.rows - 1, env.cols - 1])
    corner = jnp.where(2 * mate.cell <= last, last, 0)
    goal = jnp.where(food.found, food.cell, corner)
    step = yield walk(env, goal, food.found, food.found | mate.found, memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
