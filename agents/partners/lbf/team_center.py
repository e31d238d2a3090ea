"""Goes to the visible food nearest to the midpoint of itself and the visible players, and loads it on arrival."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, Waypoint, approaching, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> Walking:
    """With nobody in sight the midpoint is its own cell. Levels are ignored; the target is chosen anew every step."""
    scene = look(env, view)
    others = jnp.sum(jnp.where(scene.player_seen[:, None], scene.players, 0), axis=0)
    count = 1 + jnp.sum(scene.player_seen)
    # Distances to the midpoint times the number of players: no fractions, so that ties are exact.
    score = distance(count * scene.foods, scene.cell + others)
    step = yield approaching(env, choose(score, scene.food_seen, scene.foods), memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
