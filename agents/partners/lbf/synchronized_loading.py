"""Stands beside the visible food nearest to itself and loads only while another player stands beside it too."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, Waypoint, approaching, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import accompanied, look, nearest_food
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> Walking:
    """Never loads alone, even where its own level is enough."""
    scene = look(env, view)
    target = nearest_food(scene, scene.cell)
    step = yield approaching(env, target, memory.cell, key)
    return load_on_arrival(step, ready=accompanied(scene, target.cell)), Waypoint(step.waypoint)
