"""Draws of free cells of a grid, exactly uniform and without trial and error.

Cells are numbered row-major, 0 to n - 1. A set of cells is a bitboard: one bit a cell, 32 cells a word, `[W]` uint32.
Excluding cells is one `and` with a row of a table, and the k-th free cell is found by counting bits, so that a draw
costs the same however full the grid is.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

WORD = 32
#: Foods stand more than this many steps (Manhattan distance) from each other.
FOOD_SPACING = 2


@lru_cache(maxsize=64)
def tables(rows: int, cols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bitboards of a grid: all cells `[W]`, the interior `[W]`, beside each cell the others `[n + 1, W]`, and beside
    food on each cell those where food may stand `[n + 1, W]`. The last row of a table excludes nothing."""
    row, col = np.divmod(np.arange(rows * cols), cols)
    interior = (row > 0) & (row < rows - 1) & (col > 0) & (col < cols - 1)
    distance = np.abs(row[:, None] - row) + np.abs(col[:, None] - col)
    everywhere = np.ones_like(interior)
    others, apart = (np.vstack([distance > least, everywhere]) for least in (0, FOOD_SPACING))
    return _pack(everywhere), _pack(interior), _pack(others), _pack(apart)


def _pack(cells: np.ndarray) -> np.ndarray:
    """Bits `[..., n]` to words `[..., W]`."""
    missing = -cells.shape[-1] % WORD
    bits = np.pad(cells, [(0, 0)] * (cells.ndim - 1) + [(0, missing)]).reshape(*cells.shape[:-1], -1, WORD)
    return (bits.astype(np.uint32) << np.arange(WORD, dtype=np.uint32)).sum(-1, dtype=np.uint32)


def draw_cells(
    free: UInt32[Array, " W"], remaining: UInt32[np.ndarray, "n_1 W"], uniform: Float[Array, " m"]
) -> tuple[Int[Array, " m"], Float[Array, " m"]]:
    """m cells one after the other, each uniform on those then free; n where none was left.

    Also, what the choice of each cell leaves of its number: again uniform in [0, 1) and independent of the cells, on a
    grid of up to 400 cells in steps of 1 / 16,000 or finer.

    Args:
        free: bitboard of the cells at first.
        remaining: per cell, which cells its choice leaves free, as `tables` gives it.
        uniform: numbers drawn uniformly from [0, 1), one a cell.
    """
    nowhere = jnp.int32(remaining.shape[0] - 1)

    def draw(carry: tuple[Array, Array], uniform: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        # Excluding the last cell here and not after its draw makes XLA compute the draw once, not once a word.
        free, last = carry
        free = free & jnp.asarray(remaining)[last]
        scaled = uniform * _count(free).sum()
        # A 23-bit fraction below 1 times an integer never rounds up to that integer in float32.
        rank = jnp.floor(scaled)
        cell = jnp.where((free == 0).all(), nowhere, _cell_of_rank(free, rank.astype(jnp.int32)))
        return (free, cell), (cell, scaled - rank)

    return jax.lax.scan(draw, (free, nowhere), uniform)[1]


def _cell_of_rank(free: UInt32[Array, " W"], rank: Int[Array, ""]) -> Int[Array, ""]:
    """The free cell that has `rank` free cells before it."""
    counts = _count(free)
    word, cell, before = free[0], jnp.int32(0), counts[0]
    local = rank
    for i in range(1, free.shape[0]):
        later = rank >= before
        word = jnp.where(later, free[i], word)
        cell = jnp.where(later, WORD * i, cell)
        local = jnp.where(later, rank - before, local)
        before = before + counts[i]
    for width in (16, 8, 4, 2, 1):
        low = _count(word & np.uint32((1 << width) - 1))
        later = local >= low
        word = jnp.where(later, word >> np.uint32(width), word)
        cell = jnp.where(later, cell + width, cell)
        local = jnp.where(later, local - low, local)
    return cell


def _count(words: Array) -> Array:
    return jax.lax.population_count(words).astype(jnp.int32)


def lowest(values: Int[Array, " n"], k: int) -> Int[Array, " k"]:
    """The k lowest values (all n if there are fewer), ascending: insertion into a list, elementwise over a batch."""
    ordered: list[Array] = []
    for value in values:
        result = []
        for other in ordered:
            result.append(jnp.minimum(other, value))
            value = jnp.maximum(other, value)
        ordered = [*result, value][:k]
    return jnp.stack(ordered)
