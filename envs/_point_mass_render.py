"""Pictures of the plane: a square about the origin, y upwards, in units of length."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8

from jaxscope.drawing import INK, Canvas, Colour, seat_colour

from ._point_mass import Body

#: Shorter side of a picture, roughly, in pixels.
SIZE = 480
PAPER, GRID = (246, 244, 238), (226, 221, 210)
#: An arrow shows where a body goes within this time.
AHEAD = 0.3


class Sheet:
    """A square of paper that reaches at least `reach` from the origin in every direction."""

    def __init__(self, reach: float):
        self.half = math.ceil(2 * reach) / 2
        side = round(2 * self.half)
        self._canvas = Canvas(side, side, SIZE // side, PAPER)
        for k in range(side + 1):
            self._canvas.line([(k, 0), (k, side)], 0.01, GRID)
            self._canvas.line([(0, k), (side, k)], 0.01, GRID)

    def disc(self, x: float, y: float, radius: float, fill: Colour, edge: float = 0.0) -> None:
        """A disc, with a dark outline `edge` thick."""
        if edge:
            self._canvas.disc(*self._at(x, y), radius + edge, INK)
        self._canvas.disc(*self._at(x, y), radius, fill)

    def ellipse(self, x: float, y: float, across: float, up: float, fill: Colour) -> None:
        self._canvas.ellipse(*self._at(x, y), across, up, fill)

    def ring(self, x: float, y: float, radius: float, thick: float, fill: Colour) -> None:
        """A thin circle."""
        angles = np.linspace(0, 2 * math.pi, 97)
        self.line([(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles], thick, fill)

    def line(self, points: Sequence[tuple[float, float]], thick: float, fill: Colour) -> None:
        self._canvas.line([self._at(x, y) for x, y in points], thick, fill)

    def label(self, x: float, y: float, height: float, text: str) -> None:
        self._canvas.label(*self._at(x, y), height, text)

    def agent(self, body: Body, radius: float, seat: int) -> None:
        """A disc in the colour of the seat with its number, and a line that shows where it goes.

        One beyond the edge is drawn at the edge, smaller.
        """
        x, y, vx, vy = (float(value) for value in body)
        inside = max(abs(x), abs(y)) <= self.half
        x, y = (min(max(value, -self.half), self.half) for value in (x, y))
        radius = radius if inside else 0.6 * radius
        self.line([(x, y), (x + AHEAD * vx, y + AHEAD * vy)], 0.3 * radius, INK)
        self.disc(x, y, radius, seat_colour(seat), 0.12 * radius)
        self.label(x, y, 1.1 * radius, str(seat))

    def pixels(self) -> UInt8[np.ndarray, "height width 3"]:
        return self._canvas.pixels()

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return self.half + x, self.half - y
