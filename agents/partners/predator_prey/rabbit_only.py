"""Chases the visible rabbit nearest to itself and never a stag; without a rabbit it waits in the middle."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.predator_prey._scene import Turn, chase, look, nearest
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "held-out"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Rabbit Only; no memory."""
    del key
    scene = look(env, view)
    return chase(scene, nearest(scene, scene.rabbit_seen)), memory
