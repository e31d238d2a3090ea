"""Drives the prey nearest to its teammate towards the teammate, from 0.35 behind the prey."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import beyond, choose, steer
from jaxscope.agents.partners.predator_prey._scene import Turn, go_home, look, near_mate
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"
BEHIND = 0.35


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Without its teammate or any prey in sight it goes to the middle.

    Asks of a cooperator to let prey come, and to close in on a stag only when it can be closed in on from both sides.
    """
    del key
    scene = look(env, view)
    target = choose(near_mate(scene), scene.seen, scene.prey)
    behind = beyond(scene.mate, target.place, BEHIND)
    return jnp.where(target.found & scene.mate_seen, steer(scene.own, behind), go_home(scene)), memory
