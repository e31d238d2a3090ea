"""Goes where its teammate was six steps before."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from jaxscope.agents.partners._plane import Point, either, point, steer
from jaxscope.agents.partners.pmr._scene import Turn, look
from jaxscope.envs.pmr import PMR
from jaxscope.types import View

ROLE = "training"
DELAY = 6


class Memory(NamedTuple):
    trail: tuple[Point, ...]  # where the teammate was, the latest first
    begun: Bool[Array, ""]  # False: the trail is empty


def initial_memory(env: PMR) -> Memory:
    """The memory before the first step of an episode."""
    del env
    return Memory((point(0.0, 0.0),) * DELAY, jnp.zeros((), bool))


def act(env: PMR, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """In the first steps it goes to where the teammate started.

    Asks of a cooperator to choose a landmark, and to wait there.
    """
    del env, key
    scene = look(view)
    trail = tuple(either(memory.begun, place, scene.mate) for place in memory.trail)
    latest = point(scene.mate.x, scene.mate.y)
    return steer(scene.own, trail[-1]), Memory((latest, *trail[:-1]), jnp.ones((), bool))
