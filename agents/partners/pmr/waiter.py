"""Brakes and waits until its teammate is at a landmark, then goes there."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import brake, distance, steer
from jaxscope.agents.partners.pmr._scene import Turn, look, nearest
from jaxscope.envs.pmr import PMR
from jaxscope.types import PyTree, View

ROLE = "training"


def act(env: PMR, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to go first, and to stay; no memory."""
    del key
    scene = look(view)
    landmark = nearest(env, scene.mate).place
    arrived = distance(scene.mate, landmark) < env.reach
    return jnp.where(arrived, steer(scene.own, landmark), brake(scene.own)), memory
