"""Chases the nearest rabbit while it sees one, and the nearest stag after that."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.predator_prey._scene import Turn, chase, first_of, look, nearest
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to get the rabbits out of the way, and then to help; no memory."""
    del key
    scene = look(env, view)
    return chase(scene, first_of(nearest(scene, scene.rabbit_seen), nearest(scene, scene.stag_seen))), memory
