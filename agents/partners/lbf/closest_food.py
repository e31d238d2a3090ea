"""Goes to the visible food nearest to itself and loads it as soon as it stands beside it."""

from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Waypoint, approach, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import look, nearest_food
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Waypoint]:
    """Levels are ignored and the target is chosen anew every step."""
    scene = look(env, view)
    step = approach(env, scene, nearest_food(scene, scene.cell), memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
