"""What a predator sees, and choosing among it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxscope.agents.partners._plane import Place, Target, at, choose, distance, either, own_and_mate, point, rush
from jaxscope.envs.predator_prey import Body, PredatorPrey
from jaxscope.types import PyTree, View

Turn = tuple[Array, PyTree]  # a thrust `[2]` and the next memory
#: Near enough to the middle to stop thrusting.
HOME = 0.1


class Scene(NamedTuple):
    """One predator's view of a state. What is not marked as seen must not be used."""

    own: Body
    mate: Body
    mate_seen: Bool[Array, ""]
    prey: tuple[Body, ...]
    seen: tuple[Bool[Array, ""], ...]  # in sight and not caught
    rabbit_seen: tuple[Bool[Array, ""], ...]
    stag_seen: tuple[Bool[Array, ""], ...]


def look(env: PredatorPrey, view: View) -> Scene:
    """The scene before the predator of `view`."""
    state = view.state
    own, mate = own_and_mate(state.predators, view.seat)
    seen = [alive & env.sees(own, prey) for alive, prey in zip(state.alive, state.prey, strict=True)]
    return Scene(
        own=own,
        mate=mate,
        mate_seen=env.sees(own, mate),
        prey=state.prey,
        seen=tuple(seen),
        rabbit_seen=tuple(here & ~stag for here, stag in zip(seen, state.stag, strict=True)),
        stag_seen=tuple(here & stag for here, stag in zip(seen, state.stag, strict=True)),
    )


def distances(scene: Scene, place: Place) -> list[Float[Array, ""]]:
    """From every prey to a place."""
    return [distance(prey, place) for prey in scene.prey]


def nearest(scene: Scene, allowed: Sequence[Bool[Array, ""]], place: Place | None = None) -> Target:
    """The allowed prey nearest to a place, by default to itself."""
    return choose(distances(scene, scene.own if place is None else place), allowed, scene.prey)


def near_mate(scene: Scene) -> list[Float[Array, ""]]:
    """How far every prey is from the teammate, or from itself while the teammate is out of sight."""
    pairs = zip(distances(scene, scene.mate), distances(scene, scene.own), strict=True)
    return [jnp.where(scene.mate_seen, to_mate, to_own) for to_mate, to_own in pairs]


def first_of(one: Target, other: Target) -> Target:
    """`one` if it was found, else the other."""
    index = jnp.where(one.found, one.index, other.index)
    return Target(one.found | other.found, index, either(one.found, one.place, other.place))


def go_home(scene: Scene) -> Float[Array, "2"]:
    """A thrust towards the middle of the plane, none near it."""
    middle = point(0.0, 0.0)
    return jnp.where(distance(scene.own, middle) > HOME, rush(scene.own, middle), 0.0)


def chase(scene: Scene, target: Target) -> Float[Array, "2"]:
    """A full thrust towards the target; where there is none, towards the middle."""
    return jnp.where(target.found, rush(scene.own, target.place), go_home(scene))


class Commitment(NamedTuple):
    """The memory of a predator that keeps to one prey."""

    prey: Int[Array, ""]  # number of the prey; -1: none


def uncommitted(env: PredatorPrey) -> Commitment:
    """The memory before the first step of an episode."""
    del env
    return Commitment(jnp.int32(-1))


def keep_or_choose(scene: Scene, memory: Commitment, score: Sequence[Array]) -> tuple[Target, Commitment]:
    """The remembered prey while it is seen; else the seen prey of lowest score."""
    new = choose(score, scene.seen, scene.prey)
    kept = jnp.zeros((), bool)
    for number, seen in enumerate(scene.seen):
        kept = kept | (seen & (memory.prey == number))
    old = Target(kept, memory.prey, at(memory.prey, scene.prey))
    target = first_of(old, new)
    return target, Commitment(jnp.where(target.found, target.index, jnp.int32(-1)))
