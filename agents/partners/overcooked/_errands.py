"""What a chef may set out to do, as the way there (see `_ways`), and the first of several that can be done."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxscope.agents.partners.overcooked._scene import Flag, Pot, Scene, Way
from jaxscope.agents.partners.overcooked._ways import ACTION_BITS, NEVER
from jaxscope.envs.overcooked import INTERACT, objects

_ACTION_MASK = (1 << ACTION_BITS) - 1


def first(*options: tuple[Flag | bool, Way]) -> Way:
    """The first option whose condition holds and that can be done; `NEVER` where there is none."""
    chosen = jnp.int32(NEVER)
    for condition, way in reversed(options):
        chosen = jnp.where(condition & (way < NEVER), way, chosen)
    return chosen


def action_of(way: Way) -> Int[Array, ""]:
    """The first action; STAY where there is no way."""
    return way & _ACTION_MASK


def without_touching(way: Way) -> Way:
    """Going there and facing it, but then STAY in place of INTERACT."""
    return jnp.where(action_of(way) == INTERACT, way - 1, way)


def some(flags: Iterable[Flag]) -> Flag:
    return functools.reduce(jnp.logical_or, flags)


def count(flags: Iterable[Flag]) -> Int[Array, ""]:
    return functools.reduce(jnp.add, [flag.astype(jnp.int32) for flag in flags])


def to_pot(scene: Scene, suits: Callable[[Pot], Flag]) -> Way:
    """To the nearest pot that suits."""
    ways = [jnp.where(suits(pot), pot.way, NEVER) for pot in scene.pots]
    return functools.reduce(jnp.minimum, ways)


def to_counter(scene: Scene, suits: Bool[Array, " C"]) -> Way:
    """To the nearest of the chef's counters that suit."""
    return jnp.min(jnp.where(scene.counters & suits, scene.tiles, NEVER))


def to_best_counter(scene: Scene, suits: Bool[Array, " C"], score: Int[Array, " C"]) -> Way:
    """To the one of lowest score of the chef's counters that suit, the nearest of equals."""
    possible = scene.counters & suits & (scene.tiles < NEVER)
    worst = jnp.int32(1 << 30)
    best = jnp.min(jnp.where(possible, score, worst))
    return to_counter(scene, possible & (score == best))


def to_cell(scene: Scene, cell: Int[Array, ""]) -> Way:
    """To stand on a floor cell, or face another."""
    return jnp.min(jnp.where(np.arange(len(scene.tiles)) == cell, scene.tiles, NEVER))


def lying_soup(scene: Scene) -> Way:
    """To the nearest counter with a soup."""
    return scene.nearest.soup


def put_down(scene: Scene) -> Way:
    """To the nearest empty counter."""
    return scene.nearest.empty


def hand_over(scene: Scene) -> Way:
    """To the nearest empty counter that others can take from."""
    return scene.nearest.shared


def fetch_ingredient(scene: Scene, also_lying: bool = False) -> Way:
    """To an ingredient that a pot wants, the nearer of two; to any where no pot wants one.

    The first pot that was begun decides, in reading order: the nearest would change on the way.
    """
    onion, tomato, decided = (jnp.zeros((), bool) for _ in range(3))
    for begun in (True, False):
        for pot in scene.pots:
            decides = ~decided & wants_any(pot) & (pot.idle if begun else True)
            onion |= decides & pot.wants_onion
            tomato |= decides & pot.wants_tomato
            decided |= decides
    none = ~decided
    onions = _source(scene, scene.onions, scene.nearest.onion, also_lying)
    tomatoes = _source(scene, scene.tomatoes, scene.nearest.tomato, also_lying)
    onions = jnp.where(onion | none, onions, NEVER)
    return jnp.minimum(onions, jnp.where(tomato | (none & (onions >= NEVER)), tomatoes, NEVER))


def bring_ingredient(scene: Scene) -> Way:
    """The ingredient in hand to a pot that wants it, or to others; down with it where pots want another one."""

    def wants_it(pot: Pot) -> Flag:
        return jnp.where(scene.held == objects.ONION, pot.wants_onion, pot.wants_tomato)

    useful = some(wants_it(pot) for pot in scene.pots)
    return first(
        (True, to_pot(scene, wants_it)),
        (~scene.has_pot & useful & scene.may_hand_over, hand_over(scene)),
        (some(wants_any(pot) for pot in scene.pots) & ~useful, put_down(scene)),
    )


def wants_any(pot: Pot) -> Flag:
    return pot.wants_onion | pot.wants_tomato


def started(pot: Pot) -> Flag:
    return pot.cooking | pot.ready


def fetch_dish(scene: Scene, also_lying: bool = False) -> Way:
    """To a dish; for others' pots not while one lies ready for them."""
    waiting = ~scene.has_pot & (scene.nearest.dish < NEVER)
    return jnp.where(waiting, NEVER, _source(scene, scene.dishes, scene.nearest.dish, also_lying))


def serve(scene: Scene) -> Way:
    """The soup in hand to the hatch, or to others."""
    return first((True, scene.hatch), (True, hand_over(scene)))


def _source(scene: Scene, dispenser: Way, on_counter: Way, also_lying: bool) -> Way:
    """To the dispenser; to counters too where that is wanted, or where there is no dispenser.

    Who cannot use a pot takes nothing from counters: what lies there is meant for others.
    """
    on_counter = jnp.where(scene.has_pot, on_counter, NEVER)
    if also_lying:
        return jnp.minimum(dispenser, on_counter)
    return jnp.where(dispenser < NEVER, dispenser, on_counter)
