"""Works only in company: heads for the heaviest visible food while its teammate is within 3 steps, else fetches it."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._company import Company, first_company, forget_if_empty, recall
from jaxscope.agents.partners.lbf._foraging import Walking, is_somewhere, walk
from jaxscope.agents.partners.lbf._scene import choose, distance, look, nearest_player
from jaxscope.envs.lbf import LBF, LOAD
from jaxscope.types import View

ROLE = "training"
NEAR = 3
initial_memory = first_company


def act(env: LBF, memory: Company, view: View, key: PRNGKeyArray) -> Walking:
    """Out of sight, the teammate is looked for where it was last seen, then by wandering.

    Asks of a cooperator to follow: it drops a food whenever it is left alone.
    """
    scene = look(env, view)
    mate = nearest_player(scene)
    together = mate.found & (distance(mate.cell, scene.cell) <= NEAR)
    score = distance(scene.foods, scene.cell) - scene.food_level * (env.rows + env.cols)
    food = choose(score, scene.food_seen & together, scene.foods)
    last_seen = forget_if_empty(scene, recall(scene, memory.last_seen))
    goal = jnp.where(food.found, food.cell, jnp.where(mate.found, mate.cell, last_seen))
    step = yield walk(env, goal, mate.found, is_somewhere(last_seen), memory.waypoint, key)
    loads = food.found & step.arrived
    return jnp.where(loads, jnp.int32(LOAD), step.action), Company(step.waypoint, last_seen)
