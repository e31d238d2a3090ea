"""Goes for stags first, but waits out of reach of one until its teammate has reached it; without stags, for rabbits."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import beyond, distance, rush, steer
from jaxscope.agents.partners.predator_prey._scene import Turn, chase, look, nearest
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View

ROLE = "training"
#: It waits so many times as far from the stag as the capture reaches.
HOLD = 1.5


def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """The scripted predator of PopGen's refinement loop, which avoids attempts by itself; no memory.

    Asks of a cooperator to go at the stag before it.
    """
    del key
    scene = look(env, view)
    stag = nearest(scene, scene.stag_seen)
    joined = scene.mate_seen & (distance(scene.mate, stag.place) < env.capture_distance)
    waits_at = beyond(scene.own, stag.place, -HOLD * env.capture_distance)
    hunts = jnp.where(joined, rush(scene.own, stag.place), steer(scene.own, waits_at))
    return jnp.where(stag.found, hunts, chase(scene, nearest(scene, scene.rabbit_seen))), memory
