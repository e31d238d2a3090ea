"""One step, in the reference's order: players interact one after the other, then all move, then pots cook.

Written for one game on scalars and one row of cells, so that under vmap all of it fuses into passes over the games.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from . import _overcooked_objects as objects
from ._overcooked_kitchen import COUNTER, DISHES, FLOOR, ONIONS, POT, SERVING, TOMATOES
from ._overcooked_recipes import FULL_WITH_OLD_DYNAMICS
from ._overcooked_tables import KIND_BITS, KIND_MASK, Here

if TYPE_CHECKING:
    from .overcooked import Overcooked, State

NORTH, SOUTH, EAST, WEST, STAY, INTERACT = range(6)


class Pots(NamedTuple):
    """The pots and the counters before anybody interacts."""

    worth_a_dish: Int[Array, ""]  # pots that are ready, cooking, or waiting with some but not all ingredients
    full: Int[Array, ""]  # pots that are ready, cooking, or waiting with all ingredients
    all_full: Bool[Array, ""]
    dishes_on_counters: Int[Array, ""]


class Interaction(NamedTuple):
    """What one player's INTERACT did, and what it met; all false and 0 when it did nothing."""

    held: Int[Array, ""]  # the object in hand before
    met: Int[Array, ""]  # what lay on the tile in front before
    drops: Bool[Array, ""]  # onto a counter
    takes: Bool[Array, ""]  # from a counter
    dispensed: Int[Array, ""]  # the object drawn from a dispenser, or 0
    starts: Bool[Array, ""]  # a pot
    scoops: Bool[Array, ""]  # a soup from a pot
    pots: Bool[Array, ""]  # adds an ingredient to a pot
    delivers: Bool[Array, ""]
    dish_is_useful: Bool[Array, ""]  # a dish taken now would be
    other_has_dish: Bool[Array, ""]  # of two players, the other one; else false
    other_has_onion: Bool[Array, ""]


def look_at_pots(env: Overcooked, here: Here, state: State) -> Pots:
    """One pass over the cells for all that usefulness depends on."""
    waiting = objects.size(objects.waiting_recipe(state.contents))
    has_full = (objects.started_recipe(state.contents) > 0) | (waiting == env.max_num_ingredients)
    has_some = (objects.started_recipe(state.contents) > 0) | ((waiting > 0) & (waiting < env.max_num_ingredients))
    is_pot = here.whole(here.tables.is_pot)
    ten = 1 << 10
    counts = jnp.sum(
        jnp.where(is_pot, has_some + ten * has_full, ten * ten * (state.contents == objects.DISH)), dtype=jnp.int32
    )
    full = (counts // ten) % ten
    num_pots = jnp.sum(is_pot, dtype=jnp.int32)
    return Pots(counts % ten, full, full == num_pots, counts // (ten * ten))


class Step(NamedTuple):
    """What one step did."""

    state: State  # after it
    interactions: list[Interaction]  # by seat
    pots: Pots  # before it
    blocked: Bool[Array, " A"]  # wanted to walk onto floor and was kept from it by another player


def step(env: Overcooked, here: Here, state: State, action: Int[Array, " A"]) -> Step:
    """One step of the game."""
    pots = look_at_pots(env, here, state)
    around = here.at(here.tables.around, state.cell)
    held, contents, interactions = _interact(env, here, state, action, around, pots)
    cell, orientation, blocked = _move(env, state, action, around)
    after = state._replace(
        cell=cell,
        orientation=orientation,
        held=held,
        contents=_cook(env, here, contents),
        time=state.time + 1,
    )
    return Step(after, interactions, pots, blocked)


def _ahead(env: Overcooked, cell: Int[Array, " A"], orientation: Int[Array, " A"]) -> Int[Array, " A"]:
    down = (orientation == SOUTH).astype(jnp.int32) - (orientation == NORTH)
    right = (orientation == EAST).astype(jnp.int32) - (orientation == WEST)
    return cell + down + env.height * right


def _kind(around: Int[Array, " A"], direction: Int[Array, " A"]) -> Int[Array, " A"]:
    return (around >> (KIND_BITS * direction)) & KIND_MASK


def _interact(
    env: Overcooked, here: Here, state: State, action: Int[Array, " A"], around: Int[Array, " A"], pots: Pots
) -> tuple[Int[Array, " A"], Int[Array, " C"], list[Interaction]]:
    """Hands and tiles after all interactions; each player acts on what those before it left."""
    players = range(env.num_agents)
    kinds = jnp.where(action == INTERACT, _kind(around, state.orientation), FLOOR)
    targets = _ahead(env, state.cell, state.orientation)
    cells = np.arange(env.width * env.height)
    held = [state.held[i] for i in players]
    met = [jnp.sum(jnp.where(cells == targets[i], state.contents, 0), dtype=jnp.int32) for i in players]
    dishes = pots.dishes_on_counters
    contents, interactions = state.contents, []
    for i in players:
        done, held_after, left = _interact_one(env, here, kinds[i], held, i, met[i], pots, dishes)
        for j in range(i + 1, env.num_agents):
            met[j] = jnp.where(targets[j] == targets[i], left, met[j])
        contents = jnp.where(cells == targets[i], left, contents)
        dishes = dishes + (done.drops & (held[i] == objects.DISH)) - (done.takes & (met[i] == objects.DISH))
        held[i] = held_after
        interactions.append(done)
    return jnp.stack(held), contents, interactions


def _interact_one(
    env: Overcooked,
    here: Here,
    kind: Int[Array, ""],
    hands: list[Int[Array, ""]],
    seat: int,
    met: Int[Array, ""],
    pots: Pots,
    dishes_on_counters: Int[Array, ""],
) -> tuple[Interaction, Int[Array, ""], Int[Array, ""]]:
    """What a player does, what it holds then, and what it leaves on the tile."""
    held = hands[seat]
    empty_handed, nothing_there = held == 0, met == 0
    waiting = objects.waiting_recipe(met)
    has_ingredient = (held == objects.ONION) | (held == objects.TOMATO)
    room = (objects.started_recipe(met) == 0) & (objects.size(waiting) < env.max_num_ingredients)

    drops = (kind == COUNTER) & ~empty_handed & nothing_there
    takes = (kind == COUNTER) & empty_handed & ~nothing_there
    dispensed = jnp.where(kind == ONIONS, objects.ONION, 0)
    dispensed = jnp.where(kind == TOMATOES, objects.TOMATO, dispensed)
    dispensed = jnp.where(empty_handed, jnp.where(kind == DISHES, objects.DISH, dispensed), 0)
    starts = (kind == POT) & empty_handed & (waiting > 0)
    if env.old_dynamics:
        starts = jnp.zeros_like(starts)
    scoops = (kind == POT) & (held == objects.DISH) & objects.is_done(met)
    adds = (kind == POT) & has_ingredient & room
    delivers = (kind == SERVING) & objects.is_done(held)

    held_after = jnp.where(drops | adds | delivers, 0, jnp.where(takes | scoops, met, held)) | dispensed
    ingredient = jnp.where(held == objects.ONION, objects.idle(1, 0), objects.idle(0, 1))
    left = jnp.where(takes | scoops, 0, jnp.where(drops, held, met + jnp.where(adds, ingredient, 0)))
    left = jnp.where(starts, objects.started(waiting, here.at(here.tables.cook_time, waiting)), left)

    if env.num_agents == 2:
        in_hands = sum(((hand == objects.DISH).astype(jnp.int32) for hand in hands), jnp.int32(0))
        dish_is_useful = (dishes_on_counters == 0) & (in_hands < pots.worth_a_dish)
        other_has_dish, other_has_onion = (hands[1 - seat] == thing for thing in (objects.DISH, objects.ONION))
    else:
        dish_is_useful = other_has_dish = other_has_onion = jnp.zeros((), bool)
    done = Interaction(
        held=held,
        met=met,
        drops=drops,
        takes=takes,
        dispensed=dispensed,
        starts=starts,
        scoops=scoops,
        pots=adds,
        delivers=delivers,
        dish_is_useful=dish_is_useful,
        other_has_dish=other_has_dish,
        other_has_onion=other_has_onion,
    )
    return done, held_after, left


def _move(
    env: Overcooked, state: State, action: Int[Array, " A"], around: Int[Array, " A"]
) -> tuple[Int[Array, " A"], Int[Array, " A"], Bool[Array, " A"]]:
    """Cells and orientations after all have moved at once, and who was kept from moving.

    If any two would meet or swap, all stay where they are.
    """
    moves = action < STAY
    orientation = jnp.where(moves, action, state.orientation)
    goes = moves & (_kind(around, orientation) == FLOOR)
    wished = jnp.where(goes, _ahead(env, state.cell, orientation), state.cell)
    collision = jnp.zeros((), bool)
    for i in range(env.num_agents):
        for j in range(i):
            swap = (wished[i] == state.cell[j]) & (wished[j] == state.cell[i])
            collision |= (wished[i] == wished[j]) | swap
    return jnp.where(collision, state.cell, wished), orientation, goes & collision


def _cook(env: Overcooked, here: Here, contents: Int[Array, " C"]) -> Int[Array, " C"]:
    """The tiles after time has passed; with old dynamics, full pots have started by themselves."""
    if env.old_dynamics:
        waiting = objects.waiting_recipe(contents)
        onions = waiting & 7
        time = jnp.zeros_like(contents)
        for n in range(FULL_WITH_OLD_DYNAMICS + 1):
            of_n = here.whole(here.tables.cook_time)[objects.recipe(n, FULL_WITH_OLD_DYNAMICS - n)]
            time = jnp.where(onions == n, of_n, time)
        full = objects.size(waiting) == FULL_WITH_OLD_DYNAMICS
        contents = jnp.where(full, objects.started(waiting, time), contents)
    return objects.cooked(contents)
