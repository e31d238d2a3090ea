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

    num_layouts = len(tables.static)
    random = env.random_start_pos or env.rnd_obj_prob_thresh > 0
    if not random and num_layouts == 1:
        del key
        layout = jnp.int32(0)
        return State._make([*_own_start(Here(tables, layout)), jnp.int32(0), layout])
    layout_key, cell_key, held_key, pot_key = jax.random.split(key, 4)
    layout = jax.random.randint(layout_key, (), 0, num_layouts)
    here = Here(tables, layout)
    cell, orientation, held, contents = _own_start(here)
    if not random:
        return State(cell, orientation, held, contents, jnp.int32(0), layout)
    if env.random_start_pos:
        cell = _random_cells(env, here, cell_key)
    held, contents = jnp.zeros_like(held), jnp.zeros_like(contents)
    if env.rnd_obj_prob_thresh:
        held = _random_hands(env, held_key)
        cells = np.arange(env.width * env.height)
        for pot, content in zip(here.whole(tables.pot_cell), _random_pots(env, here, pot_key), strict=True):
            contents = jnp.where(cells == pot, content, contents)
    return State(cell, jnp.full_like(orientation, NORTH), held, contents, jnp.int32(0), layout)


def _own_start(here: Here) -> list[Array]:
    """The layout's cells, orientations, hands and contents."""
    of = here.tables
    return [here.whole(leaf) for leaf in (of.start_cell, of.start_orientation, of.start_held, of.start_contents)]


def _random_cells(env: Overcooked, here: Here, key: PRNGKeyArray) -> Int[Array, " A"]:
    """Distinct floor cells, all ordered choices equally likely: the floor cells with the highest of random numbers."""
    is_floor = here.whole(here.tables.is_floor)
    height = jax.random.uniform(key, is_floor.shape)
    return jax.lax.top_k(jnp.where(is_floor, height, -1.0), env.num_agents)[1].astype(jnp.int32)


def _random_recipe(env: Overcooked, uniform: Float[Array, "n 2"]) -> Int[Array, " n"]:
    """At least one onion, at most three or as many ingredients as a soup can have."""
    most = min(MOST_RANDOM, env.max_num_ingredients)
    onions = 1 + jnp.floor(uniform[:, 0] * most).astype(jnp.int32)
    tomatoes = jnp.floor(uniform[:, 1] * (most - onions + 1)).astype(jnp.int32)
    return objects.recipe(onions, tomatoes)


def _random_hands(env: Overcooked, key: PRNGKeyArray) -> Int[Array, " A"]:
    """Given an object: a dish (0.2), an onion (0.6) or a soup (0.2)."""
    uniform = jax.random.uniform(key, (env.num_agents, 4))
    soup = objects.finished(_random_recipe(env, uniform[:, 2:]))
    kind = uniform[:, 1]
    thing = jnp.where(kind < 0.2, objects.DISH, jnp.where(kind < 0.8, objects.ONION, soup))
    return jnp.where(uniform[:, 0] < env.rnd_obj_prob_thresh, thing, 0)


def _random_pots(env: Overcooked, here: Here, key: PRNGKeyArray) -> Int[Array, " P"]:
    """Contents of the pots: empty, waiting or just started."""
    uniform = jax.random.uniform(key, (here.tables.pot_cell.shape[1], 4))
    recipe = _random_recipe(env, uniform[:, 2:])
    started = objects.started(recipe, here.at(here.tables.cook_time, recipe))
    filled = jnp.where(uniform[:, 1] < env.rnd_obj_prob_thresh, started, recipe)
    return jnp.where(uniform[:, 0] < env.rnd_obj_prob_thresh, filled, 0)
