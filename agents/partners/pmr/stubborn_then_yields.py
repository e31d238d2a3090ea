"""Keeps to the landmark nearest at the start for 20 steps; from then on goes to the one nearest to its teammate."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import at, either, steer
from jaxscope.agents.partners.pmr._scene import Stage, Turn, first_stage, landmarks, look, nearest
from jaxscope.envs.pmr import PMR
from jaxscope.types import View

ROLE = "training"
initial_memory = first_stage
PATIENCE = 20


def act(env: PMR, memory: Stage, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to come to it soon, or else to stop coming."""
    del key
    scene = look(view)
    landmark = jnp.where(memory.landmark >= 0, memory.landmark, nearest(env, scene.own).index)
    yields = memory.time >= PATIENCE
    goal = either(yields, nearest(env, scene.mate).place, at(landmark, landmarks(env)))
    return steer(scene.own, goal), Stage(landmark, memory.time + 1)
