"""Goes to its teammate first, and then to the landmark farthest from where the two met."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import at, distance, either, steer
from jaxscope.agents.partners.pmr._scene import Stage, Turn, farthest, first_stage, landmarks, look
from jaxscope.envs.pmr import PMR
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_stage
#: It has regrouped when its teammate is nearer than this, or after so many steps.
NEAR, PATIENCE = 0.3, 15


def act(env: PMR, memory: Stage, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Regroup then Diverge. The landmark is the farthest from itself, and stays the one."""
    del key
    scene = look(view)
    met = (distance(scene.own, scene.mate) < NEAR) | (memory.time >= PATIENCE)
    fresh = jnp.where(met, farthest(env, scene.own).index, jnp.int32(-1))
    landmark = jnp.where(memory.landmark >= 0, memory.landmark, fresh)
    goal = either(landmark >= 0, at(landmark, landmarks(env)), scene.mate)
    return steer(scene.own, goal), Stage(landmark, memory.time + 1)
