"""All that a game needs to know of its layouts, as arrays with a leading axis of layouts L.

Cells are numbered column by column, cell = x * H + y, the order of the lossless observation; poses Q = 4 C are cells
with an orientation, cell * 4 + orientation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from . import _overcooked_objects as objects
from ._overcooked_kitchen import (
    COUNTER,
    DIRECTIONS,
    DISHES,
    FLOOR,
    ONIONS,
    POT,
    SERVING,
    TOMATOES,
    Kitchen,
    kitchen,
    warn,
)
from ._overcooked_layouts import LAYOUTS, Start
from ._overcooked_paths import UNREACHABLE, distances
from ._overcooked_recipes import Amounts, recipes, spell

if TYPE_CHECKING:
    from .overcooked import Overcooked

#: Bits of a tile's kind within `Tables.around`.
KIND_BITS = 3
KIND_MASK = (1 << KIND_BITS) - 1
#: Static layers of the lossless observation, from the first bit on.
STATIC_LAYERS = (POT, COUNTER, ONIONS, TOMATOES, DISHES, SERVING)


class Tables(NamedTuple):
    """Of L layouts of one size, NumPy arrays."""

    around: Int[np.ndarray, "L C"]  # kinds of the tiles north, south, east, west of a floor cell, `KIND_BITS` each
    static: Int[np.ndarray, "L C"]  # bit i: the cell belongs to `STATIC_LAYERS[i]`
    is_pot: Bool[np.ndarray, "L C"]
    floor_cell: Int[np.ndarray, "L F"]  # in ascending order; -1 after the last
    num_floor: Int[np.ndarray, " L"]
    value: Float[np.ndarray, "L 64"]
    best_value: Float[np.ndarray, "L 64"]
    cook_time: Int[np.ndarray, "L 64"]
    start_cell: Int[np.ndarray, "L A"]
    start_orientation: Int[np.ndarray, "L A"]
    start_held: Int[np.ndarray, "L A"]
    start_contents: Int[np.ndarray, "L C"]
    pot_cell: Int[np.ndarray, "L P"]  # row by row; -1 after the last
    pot_order: Int[
        np.ndarray, "L Q P"
    ]  # by pose: pots by distance, as indices into `pot_cell`; -1 for those out of reach
    features: Float[np.ndarray, "L Q f"]  # what a player's pose decides of its features


def tables(env: Overcooked) -> Tables:
    """The arrays of an environment's layouts, NumPy's.

    Raises:
        ValueError: layouts or settings are malformed, or the layouts differ in size or in the number of players.
    """
    kitchens = {layout: kitchen(layout) for layout in env.layouts}
    if len({(k.width, k.height, len(k.starts)) for k in kitchens.values()}) > 1:
        sizes = ", ".join(f"{n} {k.width} x {k.height} for {len(k.starts)}" for n, k in kitchens.items())
        raise ValueError(f"layouts drawn together must agree in width, height and number of players, but are {sizes}")
    most_pots = max(len(k.tiles(POT)) for k in kitchens.values())
    single = [_single(env, layout, k, most_pots) for layout, k in kitchens.items()]
    return Tables(*(np.stack(leaves) for leaves in zip(*single, strict=True)))


class Here(NamedTuple):
    """The tables of the one layout in which a game is played; where there is no other, they are constants."""

    tables: Tables
    layout: Int[Array, ""]

    def whole(self, leaf: np.ndarray) -> Array:
        """A table of this layout."""
        return jnp.asarray(leaf[0]) if len(leaf) == 1 else jnp.asarray(leaf)[self.layout]

    def at(self, leaf: np.ndarray, index: Int[Array, "*n"]) -> Array:
        """Entries of a table of this layout."""
        return jnp.asarray(leaf[0])[index] if len(leaf) == 1 else jnp.asarray(leaf)[self.layout, index]


def _single(env: Overcooked, layout: str, made: Kitchen, most_pots: int) -> Tables:
    settings = LAYOUTS[layout].settings if layout in LAYOUTS else {}
    of_soups = recipes(settings, env.recipe_settings, env.max_num_ingredients, env.old_dynamics)
    _warn_of_impossible_orders(layout, made, of_soups.demanded)
    cells = made.cells()
    kinds = np.array([made.kind(cell) for cell in cells], np.int32)
    index = {cell: number for number, cell in enumerate(cells)}
    around = [_around(made, cell) if kind == FLOOR else 0 for cell, kind in zip(cells, kinds, strict=True)]
    floor = np.flatnonzero(kinds == FLOOR)
    pots = made.tiles(POT)
    order = _by_distance(made, pots, most_pots)
    start = settings.get("start") or Start("N" * len(made.starts), ("",) * len(made.starts), ())
    contents = np.zeros(len(cells), np.int32)
    for pot, recipe in start.pots:
        contents[index[pot]] = objects.idle(recipe.count("o"), recipe.count("t"))
    return Tables(
        around=np.array(around, np.int32),
        static=sum(((kinds == kind).astype(np.int32) << bit for bit, kind in enumerate(STATIC_LAYERS)), 0 * kinds),
        is_pot=kinds == POT,
        floor_cell=np.pad(floor, (0, len(cells) - len(floor)), constant_values=-1).astype(np.int32),
        num_floor=np.array(len(floor), np.int32),
        value=of_soups.value,
        best_value=of_soups.best_value,
        cook_time=of_soups.cook_time,
        start_cell=np.array([index[cell] for cell in made.starts], np.int32),
        start_orientation=np.array(["NSEW".index(letter) for letter in start.orientations], np.int32),
        start_held=np.array([{"": 0, "o": objects.ONION, "t": objects.TOMATO}[h] for h in start.held], np.int32),
        start_contents=contents,
        pot_cell=np.array([index[pot] for pot in pots] + [-1] * (most_pots - len(pots)), np.int32),
        pot_order=order,
        features=_features_of_poses(made, order, env.num_pots),
    )


def _warn_of_impossible_orders(layout: str, made: Kitchen, demanded: list[Amounts]) -> None:
    """Where the kitchen's dispensers have not what any order asks for."""
    has_onions, has_tomatoes = (not made.in_reach().isdisjoint(made.tiles(kind)) for kind in (ONIONS, TOMATOES))
    if not any((has_onions or not onions) and (has_tomatoes or not tomatoes) for onions, tomatoes in demanded):
        orders = ",".join(spell(amounts) for amounts in demanded)
        warn(f"layout {layout!r}: no soup in demand ({orders}) can be made from its dispensers")


def _around(made: Kitchen, cell: tuple[int, int]) -> int:
    return sum(made.kind(tile) << (KIND_BITS * facing) for facing, tile in enumerate(made.neighbours(cell)))


def _features_of_poses(made: Kitchen, order: Int[np.ndarray, "Q P"], num_pots: int) -> Float[np.ndarray, "Q f"]:
    """The features of a player that its cell and orientation decide, in their places; 0 in those of the others.

    In order: orientation; what is held (4 zeros); nearest onions, tomatoes, dishes; nearest soup and its ingredients (4
    zeros); nearest serving hatch; nearest empty counter (2 zeros); pots; walls.
    """
    positions = _positions(made)
    poses, directions = len(positions), len(DIRECTIONS)
    facing = np.tile(np.eye(directions, dtype=np.int32), (poses // directions, 1))
    onions, tomatoes, dishes, hatches = (
        _nearest(made, made.tiles(kind)) for kind in (ONIONS, TOMATOES, DISHES, SERVING)
    )
    missing = max(0, num_pots - order.shape[1])
    order = np.pad(order[:, :num_pots], ((0, 0), (0, missing)), constant_values=-1)
    away = np.where((order >= 0)[..., None], np.array(made.tiles(POT))[order] - positions[:, None, :], 0)
    pots = np.concatenate([(order >= 0)[..., None], np.zeros((poses, num_pots, 7), np.int32), away], -1)
    walls = [
        [made.kind(tile) != FLOOR for tile in made.neighbours(cell)] if made.kind(cell) == FLOOR else [0] * directions
        for cell in made.cells()
    ]
    four, two = np.zeros((poses, 4), np.int32), np.zeros((poses, 2), np.int32)
    columns = [
        facing,
        four,
        onions,
        tomatoes,
        dishes,
        four,
        hatches,
        two,
        pots.reshape(poses, -1),
        np.repeat(walls, directions, axis=0),
    ]
    return np.concatenate(columns, -1).astype(np.float32)


def _positions(made: Kitchen) -> Int[np.ndarray, "Q 2"]:
    """(x, y) of every pose."""
    x, y, _ = np.meshgrid(np.arange(made.width), np.arange(made.height), np.arange(len(DIRECTIONS)), indexing="ij")
    return np.stack([x, y], -1).reshape(-1, 2)


def _nearest(made: Kitchen, tiles: list[tuple[int, int]]) -> Int[np.ndarray, "Q 2"]:
    """(dx, dy) from every pose to the tile with the fewest moves, the first of several."""
    away = np.zeros((made.width, made.height, len(DIRECTIONS), 2), np.int32)
    if tiles:
        far = np.stack([distances(made, tile) for tile in tiles])
        target = np.array(tiles, np.int32)[far.argmin(0)]
        away = np.where((far.min(0) < UNREACHABLE)[..., None], target - _positions(made).reshape(target.shape), 0)
    return away.reshape(-1, 2).astype(np.int32)


def _by_distance(made: Kitchen, pots: list[tuple[int, int]], most_pots: int) -> Int[np.ndarray, "Q P"]:
    far = np.stack([distances(made, pot).reshape(-1) for pot in pots], -1)  # [Q, pots]
    order = far.argsort(-1, kind="stable").astype(np.int32)
    order = np.where(np.take_along_axis(far, order, -1) < UNREACHABLE, order, -1)
    return np.pad(order, ((0, 0), (0, most_pots - len(pots))), constant_values=-1).astype(np.int32)
