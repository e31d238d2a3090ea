"""Points of the plane for partners that move freely: distances, choices, and thrusts towards a goal.

Coordinates are kept apart, one scalar each; anything with `x` and `y` is a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

#: The pull of a goal per unit of distance, and the brake per unit of speed, of `steer`.
PULL, BRAKE = 1.5, 0.8
#: Stands in for a length of zero, where a direction is undefined and counts as none.
TINY = 1e-12


B = TypeVar("B", bound=tuple)  # a body


class Place(Protocol):
    """Whatever lies somewhere."""

    @property
    def x(self) -> Array: ...

    @property
    def y(self) -> Array: ...


class Mover(Place, Protocol):
    """Whatever moves, with its velocity per unit of time."""

    @property
    def vx(self) -> Array: ...

    @property
    def vy(self) -> Array: ...


class Point(NamedTuple):
    x: Float[Array, ""]
    y: Float[Array, ""]


class Target(NamedTuple):
    """A choice among things in the plane."""

    found: Bool[Array, ""]  # False: there was nothing to choose from; the rest means nothing
    index: Int[Array, ""]
    place: Point


def point(x: float | Array, y: float | Array) -> Point:
    return Point(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))


def distance(a: Place, b: Place) -> Float[Array, ""]:
    dx, dy = a.x - b.x, a.y - b.y
    return jnp.sqrt(dx * dx + dy * dy)


def midpoint(a: Place, b: Place) -> Point:
    return Point(0.5 * (a.x + b.x), 0.5 * (a.y + b.y))


def beyond(start: Place, end: Place, length: float) -> Point:
    """The point `length` farther than `end`, seen from `start`."""
    stretch = length / jnp.maximum(distance(start, end), TINY)
    return Point(end.x + stretch * (end.x - start.x), end.y + stretch * (end.y - start.y))


def own_and_mate(pair: tuple[B, B], seat: Int[Array, ""]) -> tuple[B, B]:
    """The body of a seat, and the other of the two."""
    first, second = pair
    pick = lambda a, b: jax.tree.map(lambda x, y: jnp.where(seat == 0, x, y), a, b)  # noqa: E731
    return pick(first, second), pick(second, first)


def either(condition: Bool[Array, ""], one: Place, other: Place) -> Point:
    """`one` where the condition holds, else the other."""
    return Point(jnp.where(condition, one.x, other.x), jnp.where(condition, one.y, other.y))


def choose(score: Sequence[Array], allowed: Sequence[Array | bool], places: Sequence[Place]) -> Target:
    """The allowed one of lowest score, the first of equals."""
    best = jnp.where(allowed[0], score[0], jnp.inf)
    index, place = jnp.int32(0), point(places[0].x, places[0].y)
    found = jnp.asarray(allowed[0], bool)
    for other in range(1, len(places)):
        better = jnp.asarray(allowed[other]) & (score[other] < best)
        best = jnp.where(better, score[other], best)
        index = jnp.where(better, jnp.int32(other), index)
        place = either(better, places[other], place)
        found = found | allowed[other]
    return Target(found, index, place)


def at(index: Int[Array, ""], places: Sequence[Place]) -> Point:
    """The place of a number, the first for a number that none has."""
    place = point(places[0].x, places[0].y)
    for other in range(1, len(places)):
        place = either(index == other, places[other], place)
    return place


def steer(own: Mover, goal: Place) -> Float[Array, "2"]:
    """A thrust that brings a body to rest on the goal; each axis within [-1, 1]."""
    x = PULL * (goal.x - own.x) - BRAKE * own.vx
    y = PULL * (goal.y - own.y) - BRAKE * own.vy
    return jnp.clip(jnp.stack([x, y]), -1.0, 1.0)


def brake(own: Mover) -> Float[Array, "2"]:
    """A thrust that brings a body to rest."""
    return steer(own, own)


def rush(own: Place, goal: Place) -> Float[Array, "2"]:
    """A thrust of length 1 straight towards the goal."""
    apart = jnp.maximum(distance(own, goal), TINY)
    return jnp.stack([(goal.x - own.x) / apart, (goal.y - own.y) / apart])
