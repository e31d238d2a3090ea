"""Shortest walks on the grid, by a flood fill over sets of cells packed into 32-bit words.

A set of cells is a tuple of words: cell (r, c) is bit i % 32 of word i // 32, where i = r * cols + c. Kept as separate
scalars rather than one array, because then every flood step is a few bitwise operations that fuse into one loop over
the games under vmap: on CPU this is some ten times faster than a `[rows]` or `[rows, cols]` array per game.
"""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from jaxscope.envs.lbf import EAST, NONE, NORTH, SOUTH, WEST

Cells = tuple[UInt32[Array, ""], ...]

_WORD = 32
_WORD_BITS = 5


@dataclass(frozen=True)
class Board:
    """A grid of `rows` x `cols` cells, of any size, and the moves of sets of its cells."""

    rows: int
    cols: int

    def at(self, cell: Int[Array, "2"]) -> Cells:
        """The set of one cell; the empty set for (-1, -1)."""
        index = cell[0] * self.cols + cell[1]
        bit = jnp.uint32(1) << (index & (_WORD - 1)).astype(jnp.uint32)
        word_of = index >> _WORD_BITS
        return tuple(jnp.where(word_of == word, bit, jnp.uint32(0)) for word in range(self._words))

    def everywhere(self) -> tuple[np.uint32, ...]:
        """All cells of the grid."""
        return _mask(self.rows, self.cols, None)

    def beside(self, cells: Cells) -> Cells:
        """All cells that share an edge with one of `cells`."""
        return union(self.north(cells), self.south(cells), self.west(cells), self.east(cells))

    # A set moved by one cell: what would leave the grid is lost.

    def north(self, cells: Cells) -> Cells:
        return _shift(cells, -self.cols)

    def south(self, cells: Cells) -> Cells:
        return common(_shift(cells, self.cols), self.everywhere())

    def west(self, cells: Cells) -> Cells:
        return common(_shift(cells, -1), _mask(self.rows, self.cols, self.cols - 1))

    def east(self, cells: Cells) -> Cells:
        return common(_shift(cells, 1), _mask(self.rows, self.cols, 0))

    @property
    def _words(self) -> int:
        return -(-self.rows * self.cols // _WORD)


def union(*sets: Cells) -> Cells:
    """Cells of at least one of the sets."""
    return tuple(functools.reduce(jnp.bitwise_or, words) for words in zip(*sets, strict=True))


def common(a: Cells, b: Cells | tuple[np.uint32, ...]) -> Cells:
    """Cells of both sets."""
    return tuple(x & y for x, y in zip(a, b, strict=True))


def meet(a: Cells, b: Cells) -> Bool[Array, ""]:
    """Whether the sets have a cell in common."""
    return functools.reduce(jnp.bitwise_or, common(a, b)) != 0


def either(condition: Bool[Array, ""], a: Cells, b: Cells) -> Cells:
    """Set `a` where the condition holds, else `b`."""
    return tuple(jnp.where(condition, x, y) for x, y in zip(a, b, strict=True))


def first_step(board: Board, start: Int[Array, "2"], goals: Cells, blocked: Cells) -> Int[Array, ""]:
    """The first action of a shortest walk from `start` to the nearest of the `goals`, ties in the order N, S, W, E.

    Args:
        board: the grid.
        start: where the walk begins; it is free even if `blocked` holds it.
        goals: cells to reach; blocked ones do not count.
        blocked: cells that cannot be entered.

    Returns:
        A move, or NONE where `start` is a goal already or no goal can be reached.
    """
    own = board.at(start)
    free = union(own, common(tuple(~word for word in blocked), board.everywhere()))
    goals = common(goals, free)
    flooded = _flood(board, goals, free, board.beside(own))
    # The flood stopped when it first touched a neighbour, so every flooded neighbour begins a shortest walk.
    action = jnp.int32(NONE)
    for move, backwards in ((EAST, board.west), (WEST, board.east), (SOUTH, board.north), (NORTH, board.south)):
        action = jnp.where(meet(backwards(flooded), own), jnp.int32(move), action)
    return jnp.where(meet(goals, own), jnp.int32(NONE), action)


def _flood(board: Board, cells: Cells, free: Cells, stop: Cells) -> Cells:
    """`cells` grown step by step through `free` until they touch `stop` or grow no more."""

    def step(cells: Cells) -> Cells:
        grown = common(union(cells, board.beside(cells)), free)
        return either(meet(cells, stop), cells, grown)

    def many_steps(carry: tuple[Cells, Bool[Array, ""]]) -> tuple[Cells, Bool[Array, ""]]:
        # A counted loop costs a fraction of a while loop under vmap. Only walks longer than rows + cols go round again.
        cells = jax.lax.fori_loop(0, board.rows + board.cols, lambda _, cells: step(cells), carry[0])
        grown = step(cells)
        still_growing = functools.reduce(jnp.bitwise_or, [a ^ b for a, b in zip(cells, grown, strict=True)]) != 0
        return grown, still_growing

    return jax.lax.while_loop(lambda carry: carry[1], many_steps, (cells, jnp.bool_(True)))[0]


def _shift(cells: Cells, by: int) -> Cells:
    """The set moved by `by` bit positions, across words; bits moved below the first word or past the last are lost."""
    words, bits = divmod(abs(by), _WORD)
    near, far = (jnp.left_shift, jnp.right_shift) if by > 0 else (jnp.right_shift, jnp.left_shift)
    back = -1 if by > 0 else 1
    moved = []
    for word in range(len(cells)):
        source = word + back * words
        parts = []
        if 0 <= source < len(cells):
            parts.append(near(cells[source], jnp.uint32(bits)))
        if bits and 0 <= source + back < len(cells):
            parts.append(far(cells[source + back], jnp.uint32(_WORD - bits)))
        moved.append(functools.reduce(jnp.bitwise_or, parts) if parts else jnp.zeros_like(cells[0]))
    return tuple(moved)


@functools.cache
def _mask(rows: int, cols: int, without: int | None) -> tuple[np.uint32, ...]:
    """All cells of the grid, one column left out."""
    number = sum(1 << i for i in range(rows * cols) if i % cols != without)
    return tuple(np.uint32(number >> shift & 0xFFFFFFFF) for shift in range(0, rows * cols, _WORD))
