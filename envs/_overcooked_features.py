"""The featurised observation: what matters about every player, and where it is from there.

For player i: its own features; the others' features in seat order; (dx, dy) from it to each other player; its (x, y).
Features of a player: orientation (one-hot, 4); what it holds (one-hot: onion, soup, dish, tomato); (dx, dy) to the
nearest onion, tomato, dish and soup, the ingredients (onions, tomatoes) of that soup, (dx, dy) to the nearest serving
hatch and empty counter; of the `num_pots` nearest pots, the nearest first: exists, empty, full, cooking, ready, onions,
tomatoes, steps to go, (dx, dy), all 0 for pots that are missing or out of reach; whether north, south, east and west of
it are no floor.

As in `overcooked_ai` with its default planner: near is what takes few actions to face, other players left aside; what
lies on counters cannot be planned for, so it counts for nothing, and the nearest empty counter is always at (0, 0), as
is what one holds oneself, and what is out of reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from . import _overcooked_objects as objects
from ._overcooked_kitchen import DIRECTIONS
from ._overcooked_tables import Here

if TYPE_CHECKING:
    from .overcooked import Overcooked, State

PER_PLAYER = 26
PER_POT = 10

#: First columns of a player's features.
_HOLDS, _NEAREST, _SOUP, _SERVING, _POTS = 4, 8, 16, 18, 22
#: What can be held, in the order of the features, and where the nearest of its kind stands.
_HOLDABLE = (objects.ONION, objects.DONE, objects.DISH, objects.TOMATO)
_NEAREST_COLUMN = (_NEAREST, _NEAREST + 6, _NEAREST + 4, _NEAREST + 2)


def length(num_agents: int, num_pots: int) -> int:
    return num_agents * (PER_PLAYER + PER_POT * num_pots) + 2 * (num_agents - 1) + 2


def features(env: Overcooked, here: Here, state: State) -> Float[Array, "A length"]:
    """The observation of every player."""
    pots = _pots(env, here, state)
    blocks = [_player(env, here, state, seat, pots) for seat in range(env.num_agents)]
    position = jnp.stack([state.cell // env.height, state.cell % env.height], -1).astype(jnp.float32)  # [A, 2]
    views = []
    for seat in range(env.num_agents):
        others = [other for other in range(env.num_agents) if other != seat]
        away = [position[other] - position[seat] for other in others]
        views.append(jnp.concatenate([blocks[seat], *(blocks[other] for other in others), *away, position[seat]]))
    return jnp.stack(views)


def _pots(env: Overcooked, here: Here, state: State) -> Float[Array, "P 10"]:
    """Every pot's features, those left out that depend on the player."""
    rows = []
    for cell in here.whole(here.tables.pot_cell):
        content = jnp.where(cell >= 0, state.contents[cell], 0)
        waiting, started = objects.waiting_recipe(content), objects.started_recipe(content)
        recipe = waiting | started
        full = (started > 0) | (objects.size(waiting) == env.max_num_ingredients)
        flags = [content == 0, full, objects.is_cooking(content), objects.is_done(content)]
        zero = jnp.zeros_like(content)
        rows.append([zero, *flags, recipe & 7, recipe >> 3, objects.remaining(content), zero, zero])
    return jnp.stack([jnp.stack([value.astype(jnp.float32) for value in row]) for row in rows])


def _player(
    env: Overcooked, here: Here, state: State, seat: int, pots: Float[Array, "P 10"]
) -> Float[Array, " features"]:
    """What the pose decides comes from a table; what is held and the pots' states are put on top."""
    held = state.held[seat]
    pose = state.cell[seat] * len(DIRECTIONS) + state.orientation[seat]
    values = here.at(here.tables.features, pose)
    columns = np.arange(len(values))
    for number, (thing, nearest) in enumerate(zip(_HOLDABLE, _NEAREST_COLUMN, strict=True)):
        is_held = (held & thing) != 0
        values = jnp.where(is_held & ((columns == nearest) | (columns == nearest + 1)), 0.0, values)
        values = jnp.where(is_held & (columns == _HOLDS + number), 1.0, values)
    recipe = objects.started_recipe(held)
    values = jnp.where(columns == _SOUP, (recipe & 7).astype(jnp.float32), values)
    values = jnp.where(columns == _SOUP + 1, (recipe >> 3).astype(jnp.float32), values)
    order = here.at(here.tables.pot_order, pose)
    ranked = [jnp.zeros(PER_POT)] * env.num_pots
    for rank in range(min(env.num_pots, len(pots))):
        for number in range(len(pots)):
            ranked[rank] = jnp.where(order[rank] == number, pots[number], ranked[rank])
    after = len(columns) - _POTS - PER_POT * env.num_pots
    return values + jnp.concatenate([jnp.zeros(_POTS), *ranked, jnp.zeros(after)])
