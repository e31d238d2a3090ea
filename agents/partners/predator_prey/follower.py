"""Runs after its teammate until it is within 0.3 of it, and chases nothing by itself."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import brake, distance, rush
from jaxscope.agents.partners.predator_prey._scene import Turn, go_home, look
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"
GAP = 0.3


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Without a teammate in sight it goes to the middle; no memory.

    Asks of a cooperator to lead: with both of them near, every stag that it reaches can be caught.
    """
    del key
    scene = look(env, view)
    follows = jnp.where(distance(scene.own, scene.mate) > GAP, rush(scene.own, scene.mate), brake(scene.own))
    return jnp.where(scene.mate_seen, follows, go_home(scene)), memory
