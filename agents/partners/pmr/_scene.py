"""What an agent sees in Rendezvous, and choosing among the landmarks."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxscope.agents.partners._plane import Place, Point, Target, at, choose, distance, own_and_mate, point
from jaxscope.envs.pmr import PMR, Body
from jaxscope.types import PyTree, View

Turn = tuple[Array, PyTree]  # a thrust `[2]` and the next memory


class Scene(NamedTuple):
    own: Body
    mate: Body


def look(view: View) -> Scene:
    """Both agents, from the seat of `view`."""
    return Scene(*own_and_mate(view.state.agents, view.seat))


def landmarks(env: PMR) -> list[Point]:
    """East, north, west, south."""
    return [point(x, y) for x, y in env.landmarks]


def nearest(env: PMR, place: Place) -> Target:
    """The landmark nearest to a place."""
    places = landmarks(env)
    return choose([distance(place, landmark) for landmark in places], [True] * len(places), places)


def farthest(env: PMR, place: Place) -> Target:
    """The landmark farthest from a place."""
    places = landmarks(env)
    return choose([-distance(place, landmark) for landmark in places], [True] * len(places), places)


class Commitment(NamedTuple):
    """The memory of an agent that keeps to one landmark."""

    landmark: Int[Array, ""]  # number of the landmark; -1: not chosen yet


def undecided(env: PMR) -> Commitment:
    """The memory before the first step of an episode."""
    del env
    return Commitment(jnp.int32(-1))


def committed(env: PMR, memory: Commitment, choice: Int[Array, ""]) -> tuple[Point, Commitment]:
    """The landmark chosen once, `choice` if there is none yet."""
    landmark = jnp.where(memory.landmark >= 0, memory.landmark, choice)
    return at(landmark, landmarks(env)), Commitment(landmark)


class Stage(NamedTuple):
    """The memory of an agent that keeps to one landmark, and does so for a time or after one."""

    landmark: Int[Array, ""]  # number of the landmark; -1: not chosen yet
    time: Int[Array, ""]  # steps taken


def first_stage(env: PMR) -> Stage:
    """The memory before the first step of an episode."""
    del env
    return Stage(jnp.int32(-1), jnp.int32(0))
