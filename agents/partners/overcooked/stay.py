"""Does nothing: stays where it is and touches nothing."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.envs.overcooked import STAY, Overcooked
from jaxscope.types import PyTree, View

ROLE = "bound"


def act(env: Overcooked, memory: PyTree, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], PyTree]:
    """Always STAY; no memory."""
    del env, view, key
    return jnp.int32(STAY), memory
