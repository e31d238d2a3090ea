"""Chases the visible prey nearest to its teammate, rabbit or stag, chosen anew every step."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import choose
from jaxscope.agents.partners.predator_prey._scene import Turn, chase, look, near_mate
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "held-out"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Teammate-Biased Prey. While the teammate is out of sight, the prey nearest to itself; no memory."""
    del key
    scene = look(env, view)
    return chase(scene, choose(near_mate(scene), scene.seen, scene.prey)), memory
