"""Draws a landmark at the start, each as likely as the others, goes there and stays."""

import jax
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import steer
from jaxscope.agents.partners.pmr._scene import Commitment, Turn, committed, look, undecided
from jaxscope.envs.pmr import LANDMARKS, PMR
from jaxscope.types import View

ROLE = "training"
initial_memory = undecided


def act(env: PMR, memory: Commitment, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to see where it goes and to come along."""
    goal, memory = committed(env, memory, jax.random.randint(key, (), 0, len(LANDMARKS)))
    return steer(look(view).own, goal), memory
