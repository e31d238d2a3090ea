"""Goes to the visible food of the highest level, the nearest of equals, and keeps loading there until it is eaten."""

from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Waypoint, approach, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Waypoint]:
    """Asks of a cooperator to come to the heaviest food first, whatever lies on the way."""
    scene = look(env, view)
    score = distance(scene.foods, scene.cell) - scene.food_level * (env.rows + env.cols)
    step = approach(env, scene, choose(score, scene.food_seen, scene.foods), memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
