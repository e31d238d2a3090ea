"""Stands beside the visible food nearest to itself and loads only while another player stands beside it too."""

from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Waypoint, approach, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import accompanied, look, nearest_food
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Waypoint]:
    """Never loads alone, even where its own level is enough."""
    scene = look(env, view)
    target = nearest_food(scene, scene.cell)
    step = approach(env, scene, target, memory.cell, key)
    return load_on_arrival(step, ready=accompanied(scene, target.cell)), Waypoint(step.waypoint)
