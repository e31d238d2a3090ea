"""Shortest ways through a kitchen, from everywhere to everything, with another chef standing anywhere: tables.

A way is one integer, so that the best of several ways is their minimum: the number of actions until the tile can be
used, then the place of the goal in reading order, then the first action. Ways that lead through the other chef count as
longer than all others; `NEVER` is no way at all, and its action is STAY.

Sizes: L layouts, R regions, F floor cells, B = F + 1 places of the other chef (the last: nobody is in the way),
C cells, P pots.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Int

from jaxscope.envs.overcooked import INTERACT, STAY, kitchens

ACTION_BITS = 3
COST_SHIFT = 15
THROUGH_THE_OTHER = 1 << 12  # actions by which a way through the other chef counts as longer
NEVER = ((1 << 13) << COST_SHIFT) + STAY
AT_HAND = INTERACT  # the way to the tile in front

#: Columns of `Ways.places`; the pots follow.
ONIONS, TOMATOES, DISHES, HATCH, OUT_OF_THE_WAY, BY_A_POT, AWAY, FIRST_POT = range(8)
#: Where a chef works; the middle column belongs to both halves.
EVERYWHERE, WEST_HALF, EAST_HALF = REGIONS = range(3)

_FAR = 1 << 11
_DISPENSERS = (kitchens.ONIONS, kitchens.TOMATOES, kitchens.DISHES, kitchens.SERVING)
_STATIONS = (*_DISPENSERS, kitchens.POT)


class Ways(NamedTuple):
    """Of L layouts of one size, NumPy arrays."""

    floor: Int[np.ndarray, "L C"]  # number of each floor cell, in reading order; F for other tiles
    floor_cell: Int[np.ndarray, "L F"]  # and the reverse; -1 after the last
    num_floor: Int[np.ndarray, " L"]
    kind: Int[np.ndarray, "L C"]
    pot: Int[np.ndarray, "L P"]  # cells of the pots in reading order; -1 after the last
    places: Int[np.ndarray, "L R B F K"]  # ways to stations by kind, to places to wait, away from the other, to pots
    tiles: Int[np.ndarray, "L B F C"]  # ways to every cell: to stand on floor, to face anything else
    counters: Bool[np.ndarray, "L R C"]  # that somebody can use; those of a half include the next column
    shared: Bool[np.ndarray, "L R C"]  # of these, the ones to hand things over: used from both sides
    several_shared: Bool[np.ndarray, "L R"]  # there are two of those at least
    pot_distance: Int[np.ndarray, "L C"]  # steps between the places before a counter and before the nearest pot


def is_free(way: Int[Array, ""]) -> Bool[Array, ""]:
    """Whether it leads there without going through the other chef."""
    return way < (THROUGH_THE_OTHER << COST_SHIFT)


@functools.cache
def ways(layouts: tuple[str, ...]) -> Ways:
    """The tables of layouts that agree in size."""
    made = [kitchens.kitchen(layout) for layout in layouts]
    most_floor = max(len(kitchen.tiles(kitchens.FLOOR)) for kitchen in made)
    most_pots = max(len(kitchen.tiles(kitchens.POT)) for kitchen in made)
    single = [_Builder(kitchen, most_floor, most_pots).ways() for kitchen in made]
    return Ways(*(np.stack(leaves) for leaves in zip(*single, strict=True)))


def walks(kitchen: kitchens.Kitchen) -> tuple[Int[np.ndarray, "B f f"], Int[np.ndarray, "B f f"]]:
    """Steps between floor cells with each of them blocked, and the first move, the first of equals in N, S, E, W.

    From the blocked cell itself, which is where no chef walks, ways are as if it were free.
    """
    floor = kitchen.tiles(kitchens.FLOOR)
    number = {cell: n for n, cell in enumerate(floor)}
    ahead = np.array([[number.get(cell, -1) for cell in kitchen.neighbours(tile)] for tile in floor])  # [f, 4]
    cells = np.arange(len(floor))
    steps = np.full((len(floor) + 1, len(floor), len(floor)), _FAR, np.int32)
    steps[:, cells, cells] = 0
    steps[cells, cells, :] = steps[cells, :, cells] = _FAR
    for length in range(1, len(floor)):
        before = steps == length - 1
        if not before.any():
            break
        for move in range(len(kitchens.DIRECTIONS)):
            new = before[:, ahead[:, move], :] & (ahead[:, move] >= 0)[None, :, None] & (steps == _FAR)
            new[cells, cells, :] = False
            steps[new] = length
    first = np.full(steps.shape, STAY, np.int32)
    for move in reversed(range(len(kitchens.DIRECTIONS))):
        nearer = (steps[:, ahead[:, move], :] == steps - 1) & (ahead[:, move] >= 0)[None, :, None] & (steps < _FAR)
        first[nearer] = move
    for table in (steps, first):
        table[cells, cells, :] = table[-1]
    return steps, first


class _Builder:
    """The tables of one kitchen, from its walks."""

    def __init__(self, kitchen: kitchens.Kitchen, most_floor: int, most_pots: int) -> None:
        self.kitchen = kitchen
        self.most_floor = most_floor
        self.most_pots = most_pots
        self.cells = kitchen.cells()
        self.floor = kitchen.tiles(kitchens.FLOOR)
        self.pots = kitchen.tiles(kitchens.POT)
        self.number = {cell: n for n, cell in enumerate(self.floor)}
        self.steps, self.first = walks(kitchen)
        # [tile] -> (floor number, direction) of the places that face it, facing N, S, E, W.
        self.access = {tile: self._access(tile) for tile in self.cells if kitchen.kind(tile) != kitchens.FLOOR}
        self.harmless = self._harmless()

    def ways(self) -> Ways:
        kind = np.array([self.kitchen.kind(cell) for cell in self.cells], np.int32)
        column = np.array([x for x, _ in self.cells])
        usable = np.array([bool(self.access.get(cell)) for cell in self.cells]) & (kind == kitchens.COUNTER)
        near = [usable & self._in_region(column, region, margin=1) for region in REGIONS]
        both = near[WEST_HALF] & near[EAST_HALF]
        shared = np.stack([self._shared(usable), *(both if both.any() else near[half] for half in (1, 2))])
        tiles = np.stack([self._to(cell) for cell in self.cells], -1)  # [B, f, C]
        places = np.stack([self._places(region, tiles) for region in REGIONS])
        return Ways(
            floor=np.array([self.number.get(cell, self.most_floor) for cell in self.cells], np.int32),
            floor_cell=self._padded([self.cells.index(cell) for cell in self.floor], self.most_floor),
            num_floor=np.array(len(self.floor), np.int32),
            kind=kind,
            pot=self._padded([self.cells.index(cell) for cell in self.pots], self.most_pots),
            places=np.stack([self._full_size(of_region) for of_region in places]),
            tiles=self._full_size(tiles),
            counters=np.stack(near),
            shared=shared,
            several_shared=shared.sum(-1) > 1,
            pot_distance=np.array([self._pot_distance(cell) for cell in self.cells], np.int32),
        )

    def _padded(self, values: list[int], size: int) -> Int[np.ndarray, " size"]:
        return np.array(values + [-1] * (size - len(values)), np.int32)

    def _full_size(self, table: Int[np.ndarray, "b f k"]) -> Int[np.ndarray, "B F k"]:
        """The table with as many rows as the largest of the layouts has; nobody in the way stays the last."""
        missing = self.most_floor - len(self.floor)
        table = np.pad(table, ((0, missing), (0, missing), (0, 0)), mode="edge")
        return table.astype(np.int32)

    def _access(self, tile: kitchens.Tile) -> list[tuple[int, int]]:
        before = [(tile[0] - dx, tile[1] - dy) for dx, dy in kitchens.DIRECTIONS]
        return [(self.number[cell], facing) for facing, cell in enumerate(before) if cell in self.number]

    def _harmless(self) -> Bool[np.ndarray, " f"]:
        """Floor cells that a chef may occupy for good: another still gets from somewhere to all kinds of stations."""
        reached = []
        for kind in _STATIONS:
            goals = sorted({goal for tile in self.kitchen.tiles(kind) for goal, _ in self.access[tile]})
            reached.append((self.steps[:, :, goals] < _FAR).any(-1))  # [B, f]
        by_kind = np.stack(reached, -1)
        cells = np.arange(len(self.floor))
        by_kind[cells, cells] = False
        needed = by_kind[-1][:, None, :]  # by the part of the kitchen that a cell belongs to
        return (by_kind[:-1] | ~needed).all(-1).any(-1, where=self.steps[-1] < _FAR)

    def _in_region(self, column: np.ndarray, region: int, margin: int = 0) -> np.ndarray:
        """Whether columns belong to a half, widened by `margin` columns."""
        twice = 2 * column - (self.kitchen.width - 1)
        if region == WEST_HALF:
            return twice <= 2 * margin
        return twice >= -2 * margin if region == EAST_HALF else np.ones_like(twice, bool)

    def _to(self, cell: kitchens.Tile) -> Int[np.ndarray, "B f"]:
        """Ways to stand on a floor cell, or before another tile and face it."""
        x, y = cell
        rank = (y * self.kitchen.width + x) << ACTION_BITS
        if cell in self.number:
            to = self.number[cell]
            cost, action = self.steps[:, :, to], self.first[:, :, to]
        elif not self.access[cell]:
            return np.full(self.steps.shape[:2], NEVER)
        else:
            goals = [goal for goal, _ in self.access[cell]]
            facing = np.array([direction for _, direction in self.access[cell]])
            cost = self.steps[:, :, goals] + 1
            best = cost.argmin(-1)[..., None]
            action = np.where(cost == 1, facing, self.first[:, :, goals])
            cost, action = (np.take_along_axis(table, best, -1)[..., 0] for table in (cost, action))
        way = np.where(cost < _FAR, (cost << COST_SHIFT) + rank + action, NEVER)
        freely = np.where(way[-1] < NEVER, way[-1] + (THROUGH_THE_OTHER << COST_SHIFT), NEVER)
        return np.where(way < NEVER, way, freely)

    def _places(self, region: int, tiles: Int[np.ndarray, "B f C"]) -> Int[np.ndarray, "B f K"]:
        def way_to(these: list[kitchens.Tile]) -> Int[np.ndarray, "B f"]:
            mine = [self.cells.index(tile) for tile in these if self._in_region(np.array(tile[0]), region)]
            return tiles[:, :, mine].min(-1, initial=NEVER)

        columns = [way_to(self.kitchen.tiles(kind)) for kind in _DISPENSERS]
        columns += [self._wait(region, tiles, self._remoteness()), self._wait(region, tiles, self._nearness(region))]
        columns.append(self._away())
        columns += [way_to(self.pots[n : n + 1]) for n in range(self.most_pots)]
        return np.stack(columns, -1)

    def _wait(self, region: int, tiles: Int[np.ndarray, "B f C"], worth: np.ndarray) -> Int[np.ndarray, "B f"]:
        """Ways to the floor cell of highest worth among those that the other chef neither occupies nor cuts off.

        Above all one of the region, and then one where the chef does not keep others from their work.
        """
        column = np.array([x for x, _ in self.floor])
        worth = worth + np.where(self._in_region(column, region), 1 << 20, 0) + np.where(self.harmless, 1 << 18, 0)
        free = self.steps < _FAR
        blocked = np.arange(len(self.floor))
        free[blocked, :, blocked] = False
        best = np.where(free, worth, -1).argmax(-1)  # [B, f], the first of equals
        to = np.array([self.cells.index(cell) for cell in self.floor])[best]
        return np.take_along_axis(tiles, to[..., None], -1)[..., 0]

    def _away(self) -> Int[np.ndarray, "B f"]:
        """One step to where it is farthest from the other chef."""
        way = np.full(self.steps.shape[:2], NEVER)
        for blocked in range(len(self.floor)):
            for at, cell in enumerate(self.floor):
                next_to = [
                    (self.number.get(tile, blocked), move) for move, tile in enumerate(self.kitchen.neighbours(cell))
                ]
                distance, move = max(((self.steps[-1, blocked, to], -move) for to, move in next_to))
                if distance > 0:
                    way[blocked, at] = (1 << COST_SHIFT) - move
        return way

    def _distance_to(self, kinds: tuple[int, ...], region: int = EVERYWHERE) -> Int[np.ndarray, " f"]:
        """Steps from each floor cell to the nearest place before a tile of these kinds."""
        goals = {
            goal
            for tile, access in self.access.items()
            for goal, _ in access
            if self.kitchen.kind(tile) in kinds and self._in_region(np.array(tile[0]), region)
        }
        return self.steps[-1][:, sorted(goals)].min(-1, initial=_FAR)

    def _remoteness(self) -> Int[np.ndarray, " f"]:
        return self._distance_to(_STATIONS)

    def _nearness(self, region: int) -> Int[np.ndarray, " f"]:
        """Near a pot, but before no station: first of all before no pot."""
        to_pot = self._distance_to((kitchens.POT,), region)
        return -to_pot + 2 * _FAR * (self._distance_to(_STATIONS) > 0) + 4 * _FAR * (to_pot > 0)

    def _shared(self, usable: Bool[np.ndarray, " C"]) -> Bool[np.ndarray, " C"]:
        """Counters between parts of the kitchen without a way between them; all, where it has one part."""
        part = (self.steps[-1] < _FAR).argmax(-1)
        parts = [len({part[goal] for goal, _ in self.access.get(cell, [])}) for cell in self.cells]
        between = usable & (np.array(parts) > 1)
        return between if between.any() else usable

    def _pot_distance(self, cell: kitchens.Tile) -> int:
        to_pot = self._distance_to((kitchens.POT,))
        return min((int(to_pot[goal]) for goal, _ in self.access.get(cell, [])), default=_FAR)
