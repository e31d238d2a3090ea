"""Drawing pictures of games: shapes on a field of cells, and the colours of the seats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]

#: One colour a seat (Okabe and Ito's palette, apart for the colour-blind too), repeated from the ninth on.
SEAT_COLOURS: tuple[Colour, ...] = (
    (0, 114, 178),
    (230, 159, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (213, 94, 0),
    (128, 118, 20),
    (90, 90, 90),
)
INK: Colour = (52, 48, 44)
PALE: Colour = (255, 255, 255)
#: Shapes are drawn this many times larger and scaled down, which smooths their edges.
_OVERSAMPLING = 3


def seat_colour(seat: int) -> Colour:
    return SEAT_COLOURS[seat % len(SEAT_COLOURS)]


class Canvas:
    """A field of `width` x `height` cells, `cell` pixels each; all coordinates and sizes are in cells, y downwards."""

    def __init__(self, width: int, height: int, cell: int, background: Colour):
        self._shape = (width * cell, height * cell)
        self._unit = cell * _OVERSAMPLING
        self._image = Image.new("RGB", (width * self._unit, height * self._unit), background)
        self._draw = ImageDraw.Draw(self._image)

    def rectangle(
        self, x: float, y: float, width: float, height: float, fill: Colour, radius: float = 0.0, edge: float = 0.0
    ) -> None:
        """A rectangle from its upper left corner, with round corners if `radius`, with an outline `edge` thick."""
        corners = self._scaled(x, y, x + width, y + height)
        outline = INK if edge else None
        self._draw.rounded_rectangle(
            corners, radius * self._unit, fill=fill, outline=outline, width=round(edge * self._unit)
        )

    def disc(self, x: float, y: float, radius: float, fill: Colour) -> None:
        self.ellipse(x, y, radius, radius, fill)

    def ellipse(self, x: float, y: float, across: float, down: float, fill: Colour) -> None:
        """An ellipse around (x, y) with these half axes."""
        self._draw.ellipse(self._scaled(x - across, y - down, x + across, y + down), fill=fill)

    def line(self, points: Sequence[tuple[float, float]], thick: float, fill: Colour) -> None:
        self._draw.line([self._point(*point) for point in points], fill=fill, width=round(thick * self._unit))

    def polygon(self, points: Sequence[tuple[float, float]], fill: Colour) -> None:
        self._draw.polygon([self._point(*point) for point in points], fill=fill)

    def label(self, x: float, y: float, height: float, text: str) -> None:
        """Words centred on (x, y), pale with a dark edge."""
        size = height * self._unit
        self._draw.text(
            self._point(x, y),
            text,
            fill=PALE,
            font=ImageFont.load_default(size),
            anchor="mm",
            stroke_width=round(size / 9),
            stroke_fill=INK,
        )

    def pixels(self) -> UInt8[np.ndarray, "height width 3"]:
        """The finished picture."""
        return np.asarray(self._image.resize(self._shape, Image.Resampling.LANCZOS))

    def _point(self, x: float, y: float) -> tuple[float, float]:
        return (x * self._unit, y * self._unit)

    def _scaled(self, *lengths: float) -> list[float]:
        return [length * self._unit for length in lengths]
