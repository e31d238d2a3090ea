"""Discs that move in the plane: the physics of the multi-agent particle environments, as mpe2 1.1.1 computes it.

Bodies of mass 1 are pushed by thrust and by each other, and slowed by damping. A step first moves a body with the
velocity it had, then changes the velocity. Numbers are kept apart, one scalar each, so that a batch of games is a set
of plain vectors to the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

#: Stands in for a distance of zero, where a direction is undefined and counts as none.
TINY = 1e-12


class Vector(NamedTuple):
    """A point, a direction or a force."""

    x: Float[Array, ""] | float
    y: Float[Array, ""] | float


class Body(NamedTuple):
    """Where a disc is, and its velocity per unit of time."""

    x: Float[Array, ""]
    y: Float[Array, ""]
    vx: Float[Array, ""]
    vy: Float[Array, ""]


@dataclass(frozen=True)
class Physics:
    """Constants of the plane; defaults are those of mpe2 (`World` in its core).

    Args:
        dt: time of one step.
        damping: share of the velocity that a step takes away.
        contact_force: force of a contact per unit of depth.
        contact_margin: depth to which contacts are soft.
    """

    dt: float = 0.1
    damping: float = 0.25
    contact_force: float = 100.0
    contact_margin: float = 0.001


def thrust(action: Float[Array, "2"], accel: float) -> Vector:
    """The force of an action, each axis clipped to [-1, 1]."""
    force = accel * jnp.clip(jnp.asarray(action, jnp.float32), -1.0, 1.0)
    return Vector(force[0], force[1])


def distance(a: Body | Vector, b: Body | Vector) -> Float[Array, ""]:
    """Between centres."""
    dx, dy = a.x - b.x, a.y - b.y
    return jnp.sqrt(dx * dx + dy * dy)


def contact(physics: Physics, a: Body, b: Body, touching: float) -> Vector:
    """The force on `a` from `b`, whose centres are `touching` apart when they touch; that on `b` is the opposite.

    Bodies with the same centre do not push each other (the reference divides by zero there).
    """
    apart = distance(a, b)
    depth = (touching - apart) / physics.contact_margin
    # The logarithm of 1 + exp(depth) without overflow.
    soft = physics.contact_margin * (jnp.maximum(depth, 0.0) + jnp.log(1.0 + jnp.exp(-jnp.abs(depth))))
    push = physics.contact_force * soft / jnp.maximum(apart, TINY)
    return Vector(push * (a.x - b.x), push * (a.y - b.y))


def contacts(
    physics: Physics, bodies: Sequence[Body], sizes: Sequence[float], solid: Sequence[Bool[Array, ""] | bool]
) -> list[Vector]:
    """The force on every body from all others; those not `solid` neither push nor are pushed. Sizes are radii."""
    zero = jnp.zeros_like(bodies[0].x)
    forces = [Vector(zero, zero) for _ in bodies]
    for i in range(len(bodies)):
        for j in range(i + 1, len(bodies)):
            push = contact(physics, bodies[i], bodies[j], sizes[i] + sizes[j])
            meets = jnp.logical_and(solid[i], solid[j])
            x, y = jnp.where(meets, push.x, 0.0), jnp.where(meets, push.y, 0.0)
            forces[i] = Vector(forces[i].x + x, forces[i].y + y)
            forces[j] = Vector(forces[j].x - x, forces[j].y - y)
    return forces


def moved(physics: Physics, body: Body, force: Vector, max_speed: float | None = None) -> Body:
    """The body one step later."""
    keep = 1.0 - physics.damping
    vx, vy = keep * body.vx + physics.dt * force.x, keep * body.vy + physics.dt * force.y
    if max_speed is not None:
        speed = jnp.sqrt(vx * vx + vy * vy)
        shrink = jnp.where(speed > max_speed, max_speed / jnp.maximum(speed, TINY), 1.0)
        vx, vy = shrink * vx, shrink * vy
    return Body(body.x + physics.dt * body.vx, body.y + physics.dt * body.vy, vx, vy)


def choose(condition: Bool[Array, ""], one: Body, other: Body) -> Body:
    """`one` where the condition holds, else the other."""
    return Body(*(jnp.where(condition, a, b) for a, b in zip(one, other, strict=True)))


def at_rest(x: Float[Array, ""] | float, y: Float[Array, ""] | float) -> Body:
    """A body that does not move."""
    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    return Body(x, y, jnp.zeros_like(x), jnp.zeros_like(y))


def on_circle(count: int, radius: float) -> tuple[tuple[float, float], ...]:
    """`count` points evenly on a circle about the origin, counter-clockwise from the east."""
    angles = [2 * math.pi * k / count for k in range(count)]
    return tuple((radius * math.cos(angle), radius * math.sin(angle)) for angle in angles)
