"""Goes to the heaviest visible food among those it cannot lift alone and loads until help comes; ignores light food."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, Waypoint, approaching, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> Walking:
    """The nearest of equally heavy foods. Seeing none it wanders.

    Asks of a cooperator to eat the light foods alone and to come to the heavy ones, the heaviest first.
    """
    scene = look(env, view)
    heavy = scene.food_seen & (scene.food_level > scene.level)
    score = distance(scene.foods, scene.cell) - scene.food_level * (env.rows + env.cols)
    step = yield approaching(env, choose(score, heavy, scene.foods), memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
