"""Stays beside its teammate and loads only foods that the teammate stands beside."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._company import Company, first_company, forget_if_empty, recall
from jaxscope.agents.partners.lbf._foraging import Walking, is_somewhere, walk
from jaxscope.agents.partners.lbf._scene import choose, distance, look, nearest_player
from jaxscope.envs.lbf import LBF, LOAD
from jaxscope.types import View

ROLE = "training"
initial_memory = first_company


def act(env: LBF, memory: Company, view: View, key: PRNGKeyArray) -> Walking:
    """Goes to the food beside the teammate, else to the teammate, else to where it last saw it, else wanders.

    Asks of a cooperator to lead: to choose the foods for both, and to stay at heavy ones.
    """
    scene = look(env, view)
    mate = nearest_player(scene)
    shared = scene.food_seen & mate.found & (distance(scene.foods, mate.cell) == 1)
    food = choose(distance(scene.foods, scene.cell), shared, scene.foods)
    last_seen = forget_if_empty(scene, recall(scene, memory.last_seen))
    goal = jnp.where(food.found, food.cell, jnp.where(mate.found, mate.cell, last_seen))
    step = yield walk(env, goal, mate.found, is_somewhere(last_seen), memory.waypoint, key)
    loads = food.found & step.arrived
    return jnp.where(loads, jnp.int32(LOAD), step.action), Company(step.waypoint, last_seen)
