"""Keeps to the landmark nearest at the start for 20 steps; from then on goes to the one nearest to its teammate."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners._plane import at, either, steer
from jaxscope.agents.partners.pmr._scene import Turn, landmarks, look, nearest
from jaxscope.envs.pmr import PMR
from jaxscope.types import View

ROLE = "training"
PATIENCE = 20


class Memory(NamedTuple):
    landmark: Int[Array, ""]  # number of the landmark; -1: not chosen yet
    time: Int[Array, ""]  # steps taken


def initial_memory(env: PMR) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory(jnp.int32(-1), jnp.int32(0))


def act(env: PMR, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to come to it soon, or else to stop coming."""
    del key
    scene = look(view)
    landmark = jnp.where(memory.landmark >= 0, memory.landmark, nearest(env, scene.own).index)
    yields = memory.time >= PATIENCE
    goal = either(yields, nearest(env, scene.mate).place, at(landmark, landmarks(env)))
    return steer(scene.own, goal), Memory(landmark, memory.time + 1)
