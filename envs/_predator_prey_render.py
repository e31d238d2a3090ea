"""Pictures of the hunting game."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from jaxscope.drawing import INK, seat_colour

from ._point_mass import Body
from ._point_mass_render import Sheet

if TYPE_CHECKING:
    from .predator_prey import PredatorPrey, State

RABBIT, STAG, ANTLER = (190, 188, 196), (146, 92, 52), (96, 62, 38)


def picture(env: PredatorPrey, state: State) -> UInt8[np.ndarray, "height width 3"]:
    """Predators with the circles of their sight, rabbits by their ears, stags by their antlers."""
    sheet = Sheet(env.start_radius + 0.5)
    if math.isfinite(env.sight):
        for seat, body in enumerate(state.predators):
            sheet.ring(float(body.x), float(body.y), env.sight, 0.008, seat_colour(seat))
    for body, stag, alive in zip(state.prey, state.stag, state.alive, strict=True):
        if alive:
            (_stag if stag else _rabbit)(sheet, body, env.prey_size)
    for seat, body in enumerate(state.predators):
        sheet.agent(body, env.predator_size, seat)
    return sheet.pixels()


def _rabbit(sheet: Sheet, body: Body, size: float) -> None:
    """A pale disc with two long ears."""
    x, y = float(body.x), float(body.y)
    for side in (-1, 1):
        sheet.ellipse(x + side * 0.45 * size, y + 1.4 * size, 0.34 * size, 0.95 * size, INK)
        sheet.ellipse(x + side * 0.45 * size, y + 1.4 * size, 0.22 * size, 0.82 * size, RABBIT)
    sheet.disc(x, y, size, RABBIT, 0.12 * size)


def _stag(sheet: Sheet, body: Body, size: float) -> None:
    """A brown disc with antlers."""
    x, y = float(body.x), float(body.y)
    for side in (-1, 1):
        tip = (x + side * 1.3 * size, y + 2.1 * size)
        fork = (x + side * 0.8 * size, y + 1.4 * size)
        sheet.line([(x + side * 0.3 * size, y + 0.7 * size), fork, tip], 0.24 * size, ANTLER)
        sheet.line([fork, (x + side * 0.5 * size, y + 2.2 * size)], 0.24 * size, ANTLER)
    sheet.disc(x, y, size, STAG, 0.12 * size)
