"""Pictures of the foraging game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from .lbf import LBF, State

CELL = 48
#: Shapes are drawn this many times larger and scaled down, which smooths their edges.
OVERSAMPLING = 3
BACKGROUND, GRID, INK, PALE = (246, 242, 233), (219, 211, 196), (52, 48, 44), (255, 255, 255)
APPLE, LEAF, STEM = (200, 62, 54), (96, 148, 72), (110, 82, 58)
#: One colour a player (Okabe and Ito's palette, apart for the colour-blind too), repeated from the ninth on.
PLAYERS = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (213, 94, 0),
    (128, 118, 20),
    (90, 90, 90),
)


def picture(env: LBF, state: State) -> UInt8[np.ndarray, "height width 3"]:
    """The field as an image, `CELL` pixels a cell; players who share a cell stand beside each other."""
    size = CELL * OVERSAMPLING
    image = Image.new("RGB", (env.cols * size, env.rows * size), BACKGROUND)
    draw = ImageDraw.Draw(image)
    for row in range(env.rows + 1):
        draw.line([(0, row * size), (env.cols * size, row * size)], fill=GRID, width=2 * OVERSAMPLING)
    for col in range(env.cols + 1):
        draw.line([(col * size, 0), (col * size, env.rows * size)], fill=GRID, width=2 * OVERSAMPLING)

    for (row, col), level in zip(np.asarray(state.food_position), np.asarray(state.food_level), strict=True):
        if level > 0:
            _food(draw, (col + 0.5) * size, (row + 0.5) * size, size, int(level))
    positions = [tuple(cell) for cell in np.asarray(state.position).tolist()]
    for seat, cell in enumerate(positions):
        shared = [other for other, position in enumerate(positions) if position == cell]
        shift = (shared.index(seat) - (len(shared) - 1) / 2) * 0.5 / max(len(shared) - 1, 1)
        x, y = (cell[1] + 0.5 + shift) * size, (cell[0] + 0.5) * size
        _player(draw, x, y, size / (1 + 0.5 * (len(shared) > 1)), seat, int(state.level[seat]))
    return np.asarray(image.resize((env.cols * CELL, env.rows * CELL), Image.Resampling.LANCZOS))


def _food(draw: ImageDraw.ImageDraw, x: float, y: float, size: float, level: int) -> None:
    """An apple with its level."""
    draw.line([(x, y - 0.2 * size), (x + 0.04 * size, y - 0.38 * size)], fill=STEM, width=round(0.05 * size))
    draw.ellipse([x + 0.03 * size, y - 0.4 * size, x + 0.25 * size, y - 0.26 * size], fill=LEAF)
    for side in (-1, 1):
        _disc(draw, x + side * 0.1 * size, y + 0.04 * size, 0.25 * size, APPLE)
    _label(draw, x, y + 0.05 * size, 0.36 * size, str(level))


def _player(draw: ImageDraw.ImageDraw, x: float, y: float, size: float, seat: int, level: int) -> None:
    """A figure in the player's colour, its level on the body."""
    colour = PLAYERS[seat % len(PLAYERS)]
    body = [x - 0.28 * size, y - 0.14 * size, x + 0.28 * size, y + 0.42 * size]
    draw.rounded_rectangle(body, radius=0.16 * size, fill=colour, outline=INK, width=round(0.02 * size))
    _disc(draw, x, y - 0.24 * size, 0.18 * size, INK)
    _disc(draw, x, y - 0.24 * size, 0.16 * size, colour)
    for side in (-1, 1):
        _disc(draw, x + side * 0.065 * size, y - 0.25 * size, 0.045 * size, PALE)
        _disc(draw, x + side * 0.065 * size, y - 0.24 * size, 0.022 * size, INK)
    _label(draw, x, y + 0.14 * size, 0.36 * size, str(level))


def _disc(draw: ImageDraw.ImageDraw, x: float, y: float, radius: float, colour: tuple[int, int, int]) -> None:
    draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)


def _label(draw: ImageDraw.ImageDraw, x: float, y: float, height: float, text: str) -> None:
    font = ImageFont.load_default(height)
    draw.text((x, y), text, fill=PALE, font=font, anchor="mm", stroke_width=round(height / 9), stroke_fill=INK)
