"""Loads only foods that it can lift alone, nearest first, and wanders about when it sees none: it never helps."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, Waypoint, approaching, first_waypoint, load_on_arrival
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_waypoint


def act(env: LBF, memory: Waypoint, view: View, key: PRNGKeyArray) -> Walking:
    """Asks of a cooperator to take what the partner cannot and not to wait for help."""
    scene = look(env, view)
    light = scene.food_seen & (scene.food_level <= scene.level)
    target = choose(distance(scene.foods, scene.cell), light, scene.foods)
    step = yield approaching(env, target, memory.cell, key)
    return load_on_arrival(step), Waypoint(step.waypoint)
