"""Pictures of the foraging game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from jaxscope.drawing import INK, PALE, Canvas, seat_colour

if TYPE_CHECKING:
    from .lbf import LBF, State

CELL = 48
BACKGROUND, GRID = (246, 242, 233), (219, 211, 196)
APPLE, LEAF, STEM = (200, 62, 54), (96, 148, 72), (110, 82, 58)


def picture(env: LBF, state: State) -> UInt8[np.ndarray, "height width 3"]:
    """The field as an image, `CELL` pixels a cell; players who share a cell stand beside each other."""
    canvas = Canvas(env.cols, env.rows, CELL, BACKGROUND)
    for row in range(env.rows + 1):
        canvas.line([(0, row), (env.cols, row)], 2 / CELL, GRID)
    for col in range(env.cols + 1):
        canvas.line([(col, 0), (col, env.rows)], 2 / CELL, GRID)

    for (row, col), level in zip(np.asarray(state.food_position), np.asarray(state.food_level), strict=True):
        if level > 0:
            _food(canvas, col + 0.5, row + 0.5, int(level))
    positions = [tuple(cell) for cell in np.asarray(state.position).tolist()]
    for seat, cell in enumerate(positions):
        shared = [other for other, position in enumerate(positions) if position == cell]
        shift = (shared.index(seat) - (len(shared) - 1) / 2) * 0.5 / max(len(shared) - 1, 1)
        size = 1 / (1 + 0.5 * (len(shared) > 1))
        _player(canvas, cell[1] + 0.5 + shift, cell[0] + 0.5, size, seat, int(state.level[seat]))
    return canvas.pixels()


def _food(canvas: Canvas, x: float, y: float, level: int) -> None:
    """An apple with its level."""
    canvas.line([(x, y - 0.2), (x + 0.04, y - 0.38)], 0.05, STEM)
    canvas.ellipse(x + 0.14, y - 0.33, 0.11, 0.07, LEAF)
    for side in (-1, 1):
        canvas.disc(x + side * 0.1, y + 0.04, 0.25, APPLE)
    canvas.label(x, y + 0.05, 0.36, str(level))


def _player(canvas: Canvas, x: float, y: float, size: float, seat: int, level: int) -> None:
    """A figure in the player's colour, its level on the body."""
    colour = seat_colour(seat)
    canvas.rectangle(x - 0.28 * size, y - 0.14 * size, 0.56 * size, 0.56 * size, colour, 0.16 * size, 0.02 * size)
    canvas.disc(x, y - 0.24 * size, 0.18 * size, INK)
    canvas.disc(x, y - 0.24 * size, 0.16 * size, colour)
    for side in (-1, 1):
        canvas.disc(x + side * 0.065 * size, y - 0.25 * size, 0.045 * size, PALE)
        canvas.disc(x + side * 0.065 * size, y - 0.24 * size, 0.022 * size, INK)
    canvas.label(x, y + 0.14 * size, 0.36 * size, str(level))
