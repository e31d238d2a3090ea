"""Chases the nearest stag, but after five steps at it without help it chases rabbits for ten steps."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners._plane import distance
from jaxscope.agents.partners.predator_prey._scene import Turn, chase, first_of, look, nearest
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import View

ROLE = "training"
TRIES, REST = 5, 10


class Memory(NamedTuple):
    tries: Int[Array, ""]  # steps at a stag, in a row
    rest: Int[Array, ""]  # steps for which it will still chase rabbits


def initial_memory(env: PredatorPrey) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory(jnp.int32(0), jnp.int32(0))


def act(env: PredatorPrey, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to be at the stag in time."""
    del key
    scene = look(env, view)
    stag, rabbit = nearest(scene, scene.stag_seen), nearest(scene, scene.rabbit_seen)
    rests = memory.rest > 0
    there = ~rests & stag.found & (distance(scene.own, stag.place) < env.capture_distance)
    tries = jnp.where(there, memory.tries + 1, 0)
    gives_up = tries >= TRIES
    rest = jnp.where(gives_up, jnp.int32(REST), jnp.maximum(memory.rest - 1, 0))
    hunts = jnp.where(rests, chase(scene, rabbit), chase(scene, first_of(stag, rabbit)))
    return hunts, Memory(jnp.where(gives_up, 0, tries), rest)
