"""Chooses the visible food farthest from itself, keeps to it until it is eaten, loading it on arrival, and so on."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._commitment import Commitment, first_commitment, keep_or_choose, remember
from jaxscope.agents.partners.lbf._foraging import Walking, approaching, load_on_arrival
from jaxscope.agents.partners.lbf._scene import distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_commitment


def act(env: LBF, memory: Commitment, view: View, key: PRNGKeyArray) -> Walking:
    """It commits, because a target chosen anew every step would turn it round halfway.

    Asks of a cooperator to go far for heavy foods and to use the time in which it crosses the grid.
    """
    scene = look(env, view)
    target = keep_or_choose(scene, memory.food, -distance(scene.foods, scene.cell))
    step = yield approaching(env, target, memory.waypoint, key)
    return load_on_arrival(step), Commitment(step.waypoint, remember(target))
