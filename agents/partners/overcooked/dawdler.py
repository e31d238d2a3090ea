"""Does the whole task by need, but rests for two steps after each action."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.overcooked import greedy
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory
from jaxscope.envs.overcooked import STAY, Overcooked
from jaxscope.types import View

ROLE = "training"
REST = 2


class Dawdling(NamedTuple):
    turn: Memory  # of its last action
    rest: Int[Array, ""]  # steps that it still rests


def initial_memory(env: Overcooked) -> Dawdling:
    """The memory before the first step of an episode."""
    return Dawdling(first_memory(env), jnp.int32(0))


def act(env: Overcooked, memory: Dawdling, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator not to count on it, and to find ways around it."""
    action, turn = yield from greedy.act(env, memory.turn, view, key)
    rests = memory.rest > 0
    turn = Memory(*(jnp.where(rests, old, new) for old, new in zip(memory.turn, turn, strict=True)))
    rest = jnp.where(rests, memory.rest - 1, REST)
    return jnp.where(rests, STAY, action), Dawdling(turn, rest)
