"""Goes to the visible food nearest to itself and loads it as soon as it stands beside it."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, Waypoint, approaching, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import look, nearest_food
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> Walking:
    """Levels are ignored and the target is chosen anew every step."""
    scene = look(env, view)
    step = yield approaching(env, nearest_food(scene, scene.cell), memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
