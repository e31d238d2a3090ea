"""A kitchen from its drawing: one letter a tile.

X counter, O onions, T tomatoes, P pot, D dishes, S serving hatch, a space (or _ or .) for floor, digits 1, 2, ... for
the floor tiles where the players start.
"""

from __future__ import annotations

import ast
import functools
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxscope import registry

from ._overcooked_layouts import LAYOUTS

#: Kinds of tiles; a kind is its index.
KINDS = " XOTPDS"
FLOOR, COUNTER, ONIONS, TOMATOES, POT, DISHES, SERVING = range(len(KINDS))
#: Steps (x, y) to the north, south, east and west.
DIRECTIONS = ((0, -1), (0, 1), (1, 0), (-1, 0))
DIGITS = "123456789"
#: Settings of older `.layout` files that change nothing, as in `overcooked_ai`.
INERT = ("num_items_for_soup",)
#: Packages whose lines are not who asked for a kitchen; dataclasses make and replace environments.
PASSED_BY_WARNINGS = ("jaxscope", "dataclasses")

Tile = tuple[int, int]


@dataclass(frozen=True)
class Kitchen:
    """The tiles and the starts; (x, y) counts from the top left."""

    rows: tuple[str, ...]  # floor where players start
    starts: tuple[Tile, ...]  # in seat order

    @property
    def width(self) -> int:
        return len(self.rows[0])

    @property
    def height(self) -> int:
        return len(self.rows)

    def kind(self, tile: Tile) -> int:
        return KINDS.index(self.rows[tile[1]][tile[0]])

    def cells(self) -> list[Tile]:
        """All tiles, column by column."""
        return [(x, y) for x in range(self.width) for y in range(self.height)]

    def tiles(self, kind: int) -> list[Tile]:
        """All tiles of a kind, row by row."""
        return [(x, y) for y in range(self.height) for x in range(self.width) if self.kind((x, y)) == kind]

    def neighbours(self, tile: Tile) -> list[Tile]:
        """The tiles to the north, south, east and west of one that is not on the border."""
        return [(tile[0] + dx, tile[1] + dy) for dx, dy in DIRECTIONS]

    def reachable(self) -> set[Tile]:
        """Floor that some player can walk to."""
        found, ahead = set(self.starts), list(self.starts)
        while ahead:
            new = [tile for tile in self.neighbours(ahead.pop()) if self.kind(tile) == FLOOR and tile not in found]
            found.update(new)
            ahead += new
        return found

    def in_reach(self) -> set[Tile]:
        """Tiles beside floor that some player can walk to."""
        return {tile for cell in self.reachable() for tile in self.neighbours(cell)}


def is_name(text: str) -> bool:
    """Whether a layout is given by its name, and not drawn."""
    return "|" not in text


@functools.cache
def kitchen(layout: str) -> Kitchen:
    """The kitchen called so, or drawn so: rows from the top, separated by `|`.

    A pot, dispenser or serving hatch that no player can walk to is worth a warning, unless the kitchen has a name.

    Raises:
        ValueError: there is no kitchen of that name, or the drawing is malformed; the message says where.
    """
    if not is_name(layout):
        return _parse(layout, warn=True)
    if layout not in LAYOUTS:
        raise ValueError(registry.unknown("Overcooked has no layout", layout, LAYOUTS))
    return _parse(LAYOUTS[layout].grid, warn=False)


def canonical(drawing: str) -> str:
    """A drawing in the form that stands in names, with `_` for floor."""
    return drawing.replace(" ", "_").replace(".", "_")


def read_file(path: str) -> tuple[str, dict[str, Any]]:
    """The drawing and the settings in a file: a bare drawing, or `overcooked_ai`'s `.layout` form.

    Raises:
        ValueError: the file cannot be read or understood.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"layout file {path}: {error}") from None
    if not text.strip():
        raise ValueError(f"layout file {path} is empty; it must hold rows of tiles, or a dictionary with a 'grid'")
    if not text.lstrip().startswith("{"):
        return _joined(text), {}
    try:
        found = ast.literal_eval(text.strip())
        drawing = found.pop("grid")
        demanded = found.pop("start_all_orders", None) or []  # none listed: all soups, unlike a plain drawing
        found = {option: value for option, value in found.items() if value is not None and option not in INERT}
        found["start_all_orders"] = demanded
        return _joined(drawing), {option: _setting(option, value) for option, value in found.items()}
    except (ValueError, SyntaxError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"layout file {path} must hold rows of tiles, or a dictionary of plain values with a 'grid': {error}"
        ) from None


def _joined(lines: str) -> str:
    """The lines of a file as one drawing; indentation and empty lines do not count."""
    return "|".join(line.strip() for line in lines.splitlines() if line.strip())


def _setting(option: str, value: Any) -> Any:
    """A value of the `.layout` form as one of our settings."""
    if option in ("start_all_orders", "start_bonus_orders"):
        return ",".join("".join(ingredient[0] for ingredient in order["ingredients"]) for order in value)
    if option in ("rew_shaping_params", "start_state"):
        raise ValueError(f"{option} is not supported in a file; give settings, or step from a state of your own")
    return tuple(value) if isinstance(value, list) else value


def _parse(drawing: str, warn: bool) -> Kitchen:
    rows = [row.replace("_", " ").replace(".", " ") for row in drawing.split("|")]
    for broken, problem in _problems(rows):
        if broken():
            raise ValueError(f"layout {drawing!r}: {problem()}")
    found = {char: (x, y) for y, row in enumerate(rows) for x, char in enumerate(row)}
    starts = tuple(found[digit] for digit in DIGITS if digit in found)
    floor = str.maketrans(dict.fromkeys(DIGITS, " "))
    made = Kitchen(tuple(row.translate(floor) for row in rows), starts)
    if warn:
        _warn_of_unreachable(made, drawing)
    return made


def _problems(rows: list[str]) -> list[tuple[Callable[[], Any], Callable[[], str]]]:
    """Rules, the basic ones first: whether each is broken, and then its message."""
    tiles = "".join(rows)
    digits = sorted(char for char in tiles if char in DIGITS)
    border = [
        (x, y)
        for y, row in enumerate(rows)
        for x, char in enumerate(row)
        if (y in (0, len(rows) - 1) or x in (0, len(row) - 1)) and char in " " + DIGITS
    ]
    strange = sorted(set(tiles) - set(KINDS + DIGITS))
    return [
        (lambda: not tiles, lambda: "it is empty"),
        (lambda: strange, lambda: f"unknown tile {strange[0]!r}; allowed are X O T P D S, space or _ or ., and digits"),
        (
            lambda: len({len(row) for row in rows}) > 1,
            lambda: f"rows must be equally long, but are {', '.join(str(len(row)) for row in rows)} tiles",
        ),
        (
            lambda: border,
            lambda: f"the border must be closed, but column {border[0][0]} of row {border[0][1]} can be walked on",
        ),
        (lambda: not digits, lambda: "no player starts anywhere; mark start tiles with digits 1, 2, ..."),
        (
            lambda: digits != list(DIGITS[: len(digits)]),
            lambda: f"starts must be numbered 1 to {len(digits)}, each once, not {', '.join(digits)}",
        ),
        *(
            (lambda tile=tile: tile not in tiles, lambda tile=tile, what=what: f"it has no {what} ({tile})")
            for tile, what in (("P", "pot"), ("D", "dish dispenser"), ("S", "serving hatch"))
        ),
        (lambda: not {"O", "T"} & set(tiles), lambda: "it has no onion or tomato dispenser (O, T)"),
    ]


def _warn_of_unreachable(made: Kitchen, drawing: str) -> None:
    beside = made.in_reach()
    lost = [tile for kind in range(ONIONS, len(KINDS)) for tile in made.tiles(kind) if tile not in beside]
    if lost:
        named = ", ".join(f"{KINDS[made.kind(tile)]} in column {tile[0]} of row {tile[1]}" for tile in lost)
        warn(f"layout {drawing!r}: no player can reach {named}")


def warn(message: str) -> None:
    """A warning that points at the line outside this package that asked for the kitchen."""
    depth, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_BY_WARNINGS:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, stacklevel=depth)
