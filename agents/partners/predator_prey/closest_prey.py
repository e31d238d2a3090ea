"""Chases the visible prey nearest to itself, rabbit or stag, chosen anew every step."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.predator_prey._scene import Turn, chase, look, nearest
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "held-out"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Closest-Prey Greedy; no memory."""
    del key
    scene = look(env, view)
    return chase(scene, nearest(scene, scene.seen)), memory
