"""Loads the nearest visible food at most three times in a row, then leaves it alone for twelve steps."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._foraging import Walking, approaching, load_on_arrival, nowhere
from jaxscope.agents.partners.lbf._scene import choose, distance, look
from jaxscope.envs.lbf import LBF
from jaxscope.types import View

ROLE = "training"
TRIES = 3
REST = 12


class Memory(NamedTuple):
    waypoint: Int[Array, "2"]  # where it wanders to while it has no target; (-1, -1): nowhere yet
    tries: Int[Array, ""]  # times it has loaded in a row
    rest: Int[Array, " F"]  # steps for which it will still ignore each food


def initial_memory(env: LBF) -> Memory:
    """The memory before the first step of an episode."""
    return Memory(nowhere(), jnp.int32(0), jnp.zeros(env.num_foods, jnp.int32))


def act(env: LBF, memory: Memory, view: View, key: PRNGKeyArray) -> Walking:
    """It goes to the next food meanwhile, or wanders when there is none.

    Asks of a cooperator to be there in time: a heavy food must be lifted within the three steps of its visit.
    """
    scene = look(env, view)
    target = choose(distance(scene.foods, scene.cell), scene.food_seen & (memory.rest == 0), scene.foods)
    step = yield approaching(env, target, memory.waypoint, key)
    tries = jnp.where(step.arrived, memory.tries + 1, 0)
    gives_up = tries >= TRIES
    left = gives_up & (jnp.arange(env.num_foods) == target.index)
    rest = jnp.where(left, jnp.int32(REST), jnp.maximum(memory.rest - 1, 0))
    return load_on_arrival(step), Memory(step.waypoint, jnp.where(gives_up, 0, tries), rest)
