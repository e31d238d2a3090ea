"""Chases the visible stag nearest to itself and never a rabbit; it clings to the stag until help comes."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.predator_prey._scene import Turn, chase, look, nearest
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "held-out"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Stag Only. Without a stag in sight it waits in the middle; no memory."""
    del key
    scene = look(env, view)
    return chase(scene, nearest(scene, scene.stag_seen)), memory
