"""Does nothing: stays on its cell and never loads."""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.envs.lbf import LBF, NONE
from jaxscope.types import PyTree, View

ROLE = "bound"


def act(env: LBF, memory: PyTree, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], PyTree]:
    """Always NONE; no memory."""
    del env, view, key
    return jnp.int32(NONE), memory
