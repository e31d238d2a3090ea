"""Leads the way to a landmark drawn at the start, and stops whenever its teammate is more than 0.6 away."""

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import brake, distance, steer
from jaxscope.agents.partners.pmr._scene import Commitment, Turn, committed, look, undecided
from jaxscope.envs.pmr import LANDMARKS, PMR
from jaxscope.types import View

ROLE = "training"
initial_memory = undecided
LEASH = 0.6


def act(env: PMR, memory: Commitment, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to stay close and to let itself be led."""
    scene = look(view)
    goal, memory = committed(env, memory, jax.random.randint(key, (), 0, len(LANDMARKS)))
    close = distance(scene.own, scene.mate) <= LEASH
    return jnp.where(close, steer(scene.own, goal), brake(scene.own)), memory
