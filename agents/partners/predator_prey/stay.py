"""Does nothing: it never thrusts, and so stays where it starts unless it is pushed."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.predator_prey._scene import Turn
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "bound"


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Always zero thrust; no memory."""
    del env, view, key
    return jnp.zeros(2), memory
