"""Chases the visible prey farthest from its teammate, chosen anew every step."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import choose
from jaxscope.agents.partners.predator_prey._scene import Turn, chase, look, near_mate
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """While the teammate is out of sight, the prey farthest from itself; no memory.

    Asks of a cooperator to hunt on the other side, and to come to a stag that it holds there.
    """
    del key
    scene = look(env, view)
    return chase(scene, choose([-apart for apart in near_mate(scene)], scene.seen, scene.prey)), memory
