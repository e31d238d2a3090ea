"""Chases the visible prey that was farthest from itself when it chose, until that is caught or out of sight."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.predator_prey._scene import (
    Commitment,
    Turn,
    chase,
    distances,
    keep_or_choose,
    look,
    uncommitted,
)
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import View

ROLE = "training"
initial_memory = uncommitted


def act(env: PredatorPrey, memory: Commitment, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to see what it is after while it runs past other prey."""
    del key
    scene = look(env, view)
    target, memory = keep_or_choose(scene, memory, [-apart for apart in distances(scene, scene.own)])
    return chase(scene, target), memory
