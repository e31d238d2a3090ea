"""Pictures of the kitchen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from jaxscope.drawing import INK, PALE, Canvas, Colour, seat_colour

from . import _overcooked_objects as objects
from ._overcooked_kitchen import COUNTER, DIRECTIONS, DISHES, FLOOR, ONIONS, POT, SERVING, TOMATOES, kitchen

if TYPE_CHECKING:
    from .overcooked import Overcooked, State

CELL = 64
TILE, SEAM = (240, 232, 216), (226, 216, 196)
WOOD, WOOD_EDGE = (176, 136, 92), (140, 104, 66)
ONION, ONION_SKIN, TOMATO, LEAF = (246, 214, 120), (196, 146, 52), (212, 60, 48), (84, 140, 66)
STEEL, STEEL_DARK, HOB = (150, 156, 164), (104, 110, 118), (70, 72, 78)
ONION_SOUP, TOMATO_SOUP, READY = (226, 178, 84), (206, 82, 54), (46, 158, 84)
HATCH, PLATE_RIM = (122, 168, 140), (196, 202, 210)
SKIN, HAIR = (244, 206, 170), (110, 74, 48)


def picture(env: Overcooked, state: State) -> UInt8[np.ndarray, "height width 3"]:
    """The kitchen as an image, `CELL` pixels a tile.

    Chefs wear the colour of their seat and look where they face, with what they hold in front of them. A pot shows its
    ingredients, the steps that it still cooks, and a green rim once its soup can be taken.
    """
    here = kitchen(env.layouts[int(state.layout)])
    contents = np.asarray(state.contents)
    canvas = Canvas(here.width, here.height, CELL, TILE)
    for number, (x, y) in enumerate(here.cells()):
        _tile(canvas, x, y, here.kind((x, y)))
        if here.kind((x, y)) == POT:
            _pot(canvas, x + 0.5, y + 0.5, int(contents[number]))
        elif contents[number]:
            _thing(canvas, x + 0.5, y + 0.45, 0.9, int(contents[number]))
    chefs = zip(np.asarray(state.cell), np.asarray(state.orientation), np.asarray(state.held), strict=True)
    for seat, (cell, orientation, held) in enumerate(chefs):
        x, y = divmod(int(cell), here.height)
        _chef(canvas, x + 0.5, y + 0.5, seat, DIRECTIONS[int(orientation)], int(held))
    return canvas.pixels()


def _tile(canvas: Canvas, x: int, y: int, kind: int) -> None:
    if kind == FLOOR:
        canvas.line([(x, y), (x + 1, y), (x + 1, y + 1)], 0.03, SEAM)
        return
    canvas.rectangle(x, y, 1, 1, WOOD_EDGE)
    canvas.rectangle(x + 0.04, y + 0.04, 0.92, 0.86, WOOD, 0.06)
    middle = (x + 0.5, y + 0.45)
    match kind:
        case _ if kind == ONIONS:
            for dx, dy in ((-0.2, 0.1), (0.2, 0.1), (0.0, -0.12)):
                _onion(canvas, middle[0] + dx, middle[1] + dy, 0.55)
        case _ if kind == TOMATOES:
            for dx, dy in ((-0.2, 0.1), (0.2, 0.1), (0.0, -0.12)):
                _tomato(canvas, middle[0] + dx, middle[1] + dy, 0.55)
        case _ if kind == DISHES:
            for step in range(3):
                _plate(canvas, middle[0], middle[1] + 0.12 - 0.1 * step, 0.9)
        case _ if kind == SERVING:
            canvas.rectangle(x + 0.1, y + 0.1, 0.8, 0.74, HATCH, 0.08)
            for shift in (-0.14, 0.1):
                top = middle[1] + shift
                canvas.polygon([(x + 0.3, top), (x + 0.7, top), (x + 0.5, top + 0.2)], PALE)
        case _:
            assert kind in (COUNTER, POT)


def _pot(canvas: Canvas, x: float, y: float, contents: int) -> None:
    """A pot on a hob with its ingredients or its soup."""
    canvas.rectangle(x - 0.42, y - 0.42, 0.84, 0.76, HOB, 0.08)
    for side in (-1, 1):
        canvas.rectangle(x + side * 0.34 - 0.08, y - 0.09, 0.16, 0.1, STEEL_DARK, 0.04)
    done = bool(contents & objects.DONE)
    canvas.disc(x, y - 0.04, 0.34, READY if done else STEEL_DARK)
    canvas.disc(x, y - 0.04, 0.28, STEEL)
    waiting, cooked = objects.waiting_recipe(contents), objects.started_recipe(contents)
    if cooked:
        canvas.disc(x, y - 0.04, 0.24, TOMATO_SOUP if cooked >> 3 else ONION_SOUP)
    _ingredients(canvas, x, y - 0.04, waiting or cooked)
    if objects.remaining(contents):
        canvas.label(x, y - 0.04, 0.4, str(objects.remaining(contents)))


def _ingredients(canvas: Canvas, x: float, y: float, recipe: int) -> None:
    """Up to seven ingredients in a ring."""
    draw = [_onion] * (recipe & 7) + [_tomato] * (recipe >> 3)
    for index, ingredient in enumerate(draw):
        turn = 2 * np.pi * index / len(draw)
        radius = 0.14 if len(draw) > 1 else 0.0
        ingredient(canvas, x + radius * float(np.sin(turn)), y - radius * float(np.cos(turn)), 0.34)


def _thing(canvas: Canvas, x: float, y: float, size: float, word: int) -> None:
    """What is held or lies on a counter."""
    if word == objects.ONION:
        _onion(canvas, x, y, 0.8 * size)
    elif word == objects.TOMATO:
        _tomato(canvas, x, y, 0.8 * size)
    else:
        _plate(canvas, x, y, size)
        recipe = objects.started_recipe(word)
        if recipe:
            canvas.ellipse(x, y, 0.24 * size, 0.17 * size, TOMATO_SOUP if recipe >> 3 else ONION_SOUP)
            canvas.label(x, y, 0.24 * size, str(objects.size(recipe)))


def _onion(canvas: Canvas, x: float, y: float, size: float) -> None:
    canvas.polygon([(x - 0.07 * size, y - 0.2 * size), (x + 0.07 * size, y - 0.2 * size), (x, y - 0.46 * size)], LEAF)
    canvas.ellipse(x, y, 0.32 * size, 0.28 * size, ONION_SKIN)
    canvas.ellipse(x, y + 0.01 * size, 0.26 * size, 0.23 * size, ONION)


def _tomato(canvas: Canvas, x: float, y: float, size: float) -> None:
    canvas.disc(x, y, 0.3 * size, TOMATO)
    canvas.ellipse(x, y - 0.26 * size, 0.16 * size, 0.06 * size, LEAF)


def _plate(canvas: Canvas, x: float, y: float, size: float) -> None:
    canvas.ellipse(x, y, 0.36 * size, 0.26 * size, INK)
    canvas.ellipse(x, y, 0.34 * size, 0.24 * size, PALE)
    canvas.ellipse(x, y, 0.24 * size, 0.16 * size, PLATE_RIM)


def _chef(canvas: Canvas, x: float, y: float, seat: int, facing: tuple[int, int], held: int) -> None:
    """A chef from above with a hat, facing as told, and what it holds at that side."""
    dx, dy = facing
    colour: Colour = seat_colour(seat)
    canvas.ellipse(x, y + 0.08, 0.36, 0.32, INK)
    canvas.ellipse(x, y + 0.08, 0.34, 0.3, colour)
    across = (-dy, dx)
    tip = (x + 0.47 * dx, y + 0.08 + 0.43 * dy)
    base = [
        (x + 0.3 * dx + side * 0.14 * across[0], y + 0.08 + 0.27 * dy + side * 0.14 * across[1]) for side in (-1, 1)
    ]
    canvas.polygon([tip, *base], colour)
    canvas.disc(x, y - 0.1, 0.22, INK)
    canvas.disc(x, y - 0.1, 0.2, SKIN if dy >= 0 else HAIR)
    _hat(canvas, x, y - 0.26)
    if dy >= 0:  # from behind, no face is seen
        for side in (-1, 1) if dx == 0 else (0.35 * dx, 1.1 * dx):
            canvas.disc(x + side * 0.09, y - 0.07, 0.03, INK)
    if held and dy < 0:  # beside the head, which would hide it
        _thing(canvas, x + 0.27, y - 0.12, 0.7, held)
    elif held:
        _thing(canvas, x + 0.3 * dx, y + 0.22 + 0.1 * dy, 0.7, held)


def _hat(canvas: Canvas, x: float, y: float) -> None:
    for shift, radius in ((-0.13, 0.1), (0.13, 0.1), (0.0, 0.13)):
        canvas.disc(x + shift, y - 0.06, radius + 0.015, INK)
    for shift, radius in ((-0.13, 0.1), (0.13, 0.1), (0.0, 0.13)):
        canvas.disc(x + shift, y - 0.06, radius, PALE)
    canvas.rectangle(x - 0.16, y - 0.02, 0.32, 0.1, PALE, 0.02)
