"""Draws one of the visible foods at random, keeps to it until it is eaten, loading it on arrival, then draws again."""

import jax
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.lbf._commitment import Commitment, first_commitment, keep_or_choose, remember
from jaxscope.agents.partners.lbf._foraging import Walking, approaching, load_on_arrival
from jaxscope.agents.partners.lbf._scene import look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
initial_memory = first_commitment


def act(env: LBF, memory: Commitment, view: View, key: PRNGKeyArray) -> Walking:
    """Asks of a cooperator to read from its walk which food it has in mind."""
    choice_key, wander_key = jax.random.split(key)
    scene = look(env, view)
    lots = jax.random.uniform(choice_key, scene.food_level.shape)
    target = keep_or_choose(scene, memory.food, lots)
    step = yield approaching(env, target, memory.waypoint, wander_key)
    return load_on_arrival(step), Commitment(step.waypoint, remember(target))
