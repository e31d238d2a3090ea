"""Goes to its teammate first, and then to the landmark farthest from where the two met."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners._plane import at, distance, either, steer
from jaxscope.agents.partners.pmr._scene import Turn, farthest, landmarks, look
from jaxscope.envs.pmr import PMR
from jaxscope.types import View

ROLE = "held-out"
#: It has regrouped when its teammate is nearer than this, or after so many steps.
NEAR, PATIENCE = 0.3, 15


class Memory(NamedTuple):
    landmark: Int[Array, ""]  # number of the landmark; -1: not chosen yet
    time: Int[Array, ""]  # steps taken


def initial_memory(env: PMR) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory(jnp.int32(-1), jnp.int32(0))


def act(env: PMR, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Regroup then Diverge. The landmark is the farthest from itself, and stays the one."""
    del key
    scene = look(view)
    met = (distance(scene.own, scene.mate) < NEAR) | (memory.time >= PATIENCE)
    fresh = jnp.where(met, farthest(env, scene.own).index, jnp.int32(-1))
    landmark = jnp.where(memory.landmark >= 0, memory.landmark, fresh)
    goal = either(landmark >= 0, at(landmark, landmarks(env)), scene.mate)
    return steer(scene.own, goal), Memory(landmark, memory.time + 1)
