"""Keeps 0.3 from its teammate and chases nothing by itself."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import beyond, steer
from jaxscope.agents.partners.predator_prey._scene import Turn, go_home, look
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"
GAP = 0.3


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Without a teammate in sight it goes to the middle. Asks of a cooperator to lead it to a stag's far side."""
    del key
    scene = look(env, view)
    behind = beyond(scene.own, scene.mate, -GAP)
    return jnp.where(scene.mate_seen, steer(scene.own, behind), go_home(scene)), memory
