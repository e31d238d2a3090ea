"""Visits all landmarks clockwise, the nearest first, and waits six steps at each."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners._plane import at, distance, steer
from jaxscope.agents.partners.pmr._scene import Turn, landmarks, look, nearest
from jaxscope.envs.pmr import LANDMARKS, PMR
from jaxscope.types import View

ROLE = "training"
WAIT = 6


class Memory(NamedTuple):
    landmark: Int[Array, ""]  # number of the one it goes to; -1: none yet
    waited: Int[Array, ""]  # steps it has been there


def initial_memory(env: PMR) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory(jnp.int32(-1), jnp.int32(0))


def act(env: PMR, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to be at one of the landmarks while it is there."""
    del key
    own = look(view).own
    current = jnp.where(memory.landmark >= 0, memory.landmark, nearest(env, own).index)
    goes_on = memory.waited >= WAIT
    landmark = jnp.where(goes_on, (current - 1) % len(LANDMARKS), current)
    goal = at(landmark, landmarks(env))
    there = distance(own, goal) < env.reach
    waited = jnp.where(there, jnp.where(goes_on, 0, memory.waited) + 1, 0)
    return steer(own, goal), Memory(landmark, waited)
