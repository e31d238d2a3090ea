"""Chases the prey in a fixed order, clockwise by where they start, from the east; skips what it does not see."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import choose
from jaxscope.agents.partners.predator_prey._scene import Turn, chase, look
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to learn the order: where it clings to a stag, and what it catches next; no memory."""
    del key
    scene = look(env, view)
    order = [jnp.float32(-number % env.num_prey) for number in range(env.num_prey)]
    return chase(scene, choose(order, scene.seen, scene.prey)), memory
