"""Goes to the visible food nearest to where it last saw its teammate, and loads it as soon as it stands beside it."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._company import Company, first_company, recall
from jaxscope.agents.partners.lbf._foraging import Walking, approaching, is_somewhere, load_on_arrival
from jaxscope.agents.partners.lbf._scene import look, nearest_food
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_company


def act(env: LBF, memory: Company, view: View, key: PRNGKeyArray) -> Walking:
    """Before it has ever seen its teammate, the nearest food to itself. Levels are ignored."""
    scene = look(env, view)
    last_seen = recall(scene, memory.last_seen)
    centre = jnp.where(is_somewhere(last_seen), last_seen, scene.cell)
    step = yield approaching(env, nearest_food(scene, centre), memory.waypoint, key)
    return load_on_arrival(step), Company(step.waypoint, last_seen)
