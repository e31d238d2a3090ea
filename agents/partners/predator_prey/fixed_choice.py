"""Draws one of the visible prey and chases it until it is caught or out of sight, then draws again."""

import jax
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.predator_prey._scene import (
    Commitment,
    Turn,
    chase,
    keep_or_choose,
    look,
    uncommitted,
)
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import View

ROLE = "training"
initial_memory = uncommitted


def act(env: PredatorPrey, memory: Commitment, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to read from its way which prey it has in mind."""
    scene = look(env, view)
    lots = jax.random.uniform(key, (env.num_prey,))
    target, memory = keep_or_choose(scene, memory, [lots[number] for number in range(env.num_prey)])
    return chase(scene, target), memory
