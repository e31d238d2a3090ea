"""What the players of the foraging game observe, one row a player."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

if TYPE_CHECKING:
    from .lbf import LBF, State

Row = list[Array]


def listing(env: LBF, state: State) -> Float[Array, "A features"]:
    """Visible foods in row-major order, then oneself, then the visible others; absent rows are (-1, -1, 0).

    Coordinates count from the corner of the window around oneself, which the border cuts off: where it does not,
    oneself is at (sight, sight). A food is seen within `sight` rows and columns. Another player is seen when its
    coordinates are not above `2 * sight`, which near the top and left borders reaches farther, as in the reference.
    """
    sight, row, col = env.window, state.position[:, 0], state.position[:, 1]
    everything = sight >= max(env.rows, env.cols) - 1
    top = 0 if everything else jnp.maximum(row - sight, 0)
    left = 0 if everything else jnp.maximum(col - sight, 0)

    foods: list[Row] = []
    for i in reversed(range(env.num_foods)):
        food_row, food_col = state.food_position[i, 0], state.food_position[i, 1]
        seen = state.food_level[i] > 0
        if not everything:
            seen &= (jnp.abs(food_row - row) <= sight) & (jnp.abs(food_col - col) <= sight)
        foods = _put_first(foods, [food_row - top, food_col - left, state.food_level[i]], seen)

    columns = 3 if env.observe_agent_levels else 2
    others: list[Row] = []
    for i in reversed(range(env.num_agents)):
        player = [row[i] - top, col[i] - left, state.level[i]][:columns]
        seen = np.arange(env.num_agents) != i
        if not everything:
            seen &= (player[0] >= 0) & (player[0] <= 2 * sight) & (player[1] >= 0) & (player[1] <= 2 * sight)
        others = _put_first(others, player, seen)
    oneself = [row - top, col - left, state.level][:columns]
    values = [value for entry in [*foods, oneself, *others[:-1]] for value in entry]
    return jnp.stack([jnp.broadcast_to(value, row.shape) for value in values], -1).astype(jnp.float32)


def _put_first(entries: list[Row], entry: Row, seen: Array | np.ndarray) -> list[Row]:
    """`entries` with one row more: `entry` in front if it is seen, otherwise an absent row at the end.

    Selects over static positions compile to one fused pass over the batch; sorting or scattering would not.
    """
    absent = [jnp.int32(-1), jnp.int32(-1), jnp.int32(0)][: len(entry)]
    shifted, kept = [entry, *entries], [*entries, absent]
    return [[jnp.where(seen, a, b) for a, b in zip(*rows, strict=True)] for rows in zip(shifted, kept, strict=True)]


def layers(env: LBF, state: State) -> Float[Array, "A 3 side side"]:
    """Player levels (or ones), food levels and free cells of the window around oneself, outside the field zero.

    Where players overlap the last one shows.
    """
    around = np.arange(-env.window, env.window + 1)[None, :]
    row, col = state.position[:, :1] + around, state.position[:, 1:] + around

    def at(rows: Bool[Array, "A side"], cols: Bool[Array, "A side"]) -> Bool[Array, "A side side"]:
        return rows[:, :, None] & cols[:, None, :]

    free = at((row >= 0) & (row < env.rows), (col >= 0) & (col < env.cols))
    player_layer = food_layer = jnp.zeros(free.shape, jnp.int32)
    for i in range(env.num_agents):
        here = at(row == state.position[i, 0], col == state.position[i, 1])
        player_layer = jnp.where(here, state.level[i] if env.observe_agent_levels else 1, player_layer)
        free &= ~here
    for i in range(env.num_foods):
        here = (state.food_level[i] > 0) & at(row == state.food_position[i, 0], col == state.food_position[i, 1])
        food_layer = jnp.where(here, state.food_level[i], food_layer)
        free &= ~here
    return jnp.stack([player_layer, food_layer, free.astype(jnp.int32)], 1).astype(jnp.float32)
