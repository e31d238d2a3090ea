"""Does nothing: it never thrusts, and so stays where it starts."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.pmr._scene import Turn
from jaxscope.envs.pmr import PMR
from jaxscope.types import PyTree, View

ROLE = "bound"


def act(env: PMR, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Always zero thrust; no memory."""
    del env, view, key
    return jnp.zeros(2), memory
