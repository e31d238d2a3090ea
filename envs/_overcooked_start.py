"""First states: the layout's own, or with random places, hands and pots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from . import _overcooked_objects as objects
from ._overcooked_dynamics import NORTH
from ._overcooked_tables import Here, Tables

if TYPE_CHECKING:
    from .overcooked import Overcooked, State

#: Most ingredients of a random soup.
MOST_RANDOM = 3


def first_state(env: Overcooked, tables: Tables, key: PRNGKeyArray) -> State:
    """A fresh game. Randomness as in `overcooked_ai`: with any of it, a start of the layout's own is not used."""
    from .overcooked import State

    num_layouts, most_pots = tables.pot_cell.shape
    random = env.random_start_pos or env.rnd_obj_prob_thresh > 0
    # One draw for everything: auto-reset pays for it at every step.
    wanted = (1, env.num_agents, env.num_agents * 4, most_pots * 4) if random else (1, 0, 0, 0)
    for_layout, for_cells, for_hands, for_pots = jnp.split(
        jax.random.uniform(key, (sum(wanted),)), np.cumsum(wanted)[:-1]
    )
    layout = _one_of(num_layouts, for_layout[0])
    here = Here(tables, layout)
    cell, orientation, held, contents = _own_start(here)
    if not random:
        return State(cell, orientation, held, contents, jnp.int32(0), layout)
    if env.random_start_pos:
        cell = _random_cells(here, for_cells)
    held, contents = jnp.zeros_like(held), jnp.zeros_like(contents)
    if env.rnd_obj_prob_thresh:
        held = _random_hands(env, for_hands.reshape(-1, 4))
        cells = np.arange(env.width * env.height)
        pots = _random_pots(env, here, for_pots.reshape(-1, 4))
        for pot, content in zip(here.whole(tables.pot_cell), pots, strict=True):
            contents = jnp.where(cells == pot, content, contents)
    return State(cell, jnp.full_like(orientation, NORTH), held, contents, jnp.int32(0), layout)


def _own_start(here: Here) -> list[Array]:
    """The layout's cells, orientations, hands and contents."""
    of = here.tables
    return [here.whole(leaf) for leaf in (of.start_cell, of.start_orientation, of.start_held, of.start_contents)]


def _one_of(number: Int[Array, "*n"] | int, uniform: Float[Array, "*n"]) -> Int[Array, "*n"]:
    """0 .. number - 1, from a number in [0, 1)."""
    return jnp.floor(uniform * number).astype(jnp.int32)


def _random_cells(here: Here, uniform: Float[Array, " A"]) -> Int[Array, " A"]:
    """Distinct floor cells, all ordered choices equally likely."""
    free = here.whole(here.tables.num_floor)
    taken: list[Array] = []  # ranks among the floor cells, in ascending order
    ranks = []
    for i in range(uniform.shape[0]):
        rank = _one_of(free - i, uniform[i])  # among the cells still free
        for other in taken:
            rank = rank + (rank >= other)
        ranks.append(rank)
        ascending, rising = [], rank
        for other in taken:
            ascending.append(jnp.minimum(other, rising))
            rising = jnp.maximum(other, rising)
        taken = [*ascending, rising]
    return here.at(here.tables.floor_cell, jnp.stack(ranks))


def _random_recipe(env: Overcooked, uniform: Float[Array, "n 2"]) -> Int[Array, " n"]:
    """At least one onion, at most three or as many ingredients as a soup can have."""
    most = min(MOST_RANDOM, env.max_num_ingredients)
    onions = 1 + _one_of(most, uniform[:, 0])
    return objects.recipe(onions, _one_of(most - onions + 1, uniform[:, 1]))


def _random_hands(env: Overcooked, uniform: Float[Array, "A 4"]) -> Int[Array, " A"]:
    """Given an object: a dish (0.2), an onion (0.6) or a soup (0.2)."""
    soup = objects.finished(_random_recipe(env, uniform[:, 2:]))
    kind = uniform[:, 1]
    thing = jnp.where(kind < 0.2, objects.DISH, jnp.where(kind < 0.8, objects.ONION, soup))
    return jnp.where(uniform[:, 0] < env.rnd_obj_prob_thresh, thing, 0)


def _random_pots(env: Overcooked, here: Here, uniform: Float[Array, "P 4"]) -> Int[Array, " P"]:
    """Contents of the pots: empty, waiting or just started."""
    recipe = _random_recipe(env, uniform[:, 2:])
    started = objects.started(recipe, here.at(here.tables.cook_time, recipe))
    filled = jnp.where(uniform[:, 1] < env.rnd_obj_prob_thresh, started, recipe)
    return jnp.where(uniform[:, 0] < env.rnd_obj_prob_thresh, filled, 0)
