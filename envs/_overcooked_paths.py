"""How far it is to a tile: the number of actions until a player alone stands beside it and faces it."""

from __future__ import annotations

import functools
from collections import deque

import numpy as np
from jaxtyping import Int

from ._overcooked_kitchen import DIRECTIONS, FLOOR, Kitchen, Tile

UNREACHABLE = 1 << 20

#: Where a player stands and which way (index into `DIRECTIONS`) it faces.
Pose = tuple[Tile, int]


@functools.cache
def distances(kitchen: Kitchen, tile: Tile) -> Int[np.ndarray, "W H 4"]:
    """Moves from every position and orientation to facing `tile`; `UNREACHABLE` from where there is no way.

    A move turns the player, and also takes it there if that is floor. The other players are not in the way.
    """
    far = np.full((kitchen.width, kitchen.height, len(DIRECTIONS)), UNREACHABLE, np.int32)
    goals = [pose for pose in _poses(kitchen) if _ahead(pose) == tile]
    for (x, y), facing in goals:
        far[x, y, facing] = 0
    before = _before(kitchen)
    queue = deque(goals)
    while queue:
        (x, y), facing = queue.popleft()
        for (px, py), turned in before.get(((x, y), facing), ()):
            if far[px, py, turned] == UNREACHABLE:
                far[px, py, turned] = far[x, y, facing] + 1
                queue.append(((px, py), turned))
    return far


def _poses(kitchen: Kitchen) -> list[Pose]:
    return [(cell, facing) for cell in kitchen.tiles(FLOOR) for facing in range(len(DIRECTIONS))]


def _ahead(pose: Pose) -> Tile:
    (x, y), facing = pose
    return x + DIRECTIONS[facing][0], y + DIRECTIONS[facing][1]


@functools.cache
def _before(kitchen: Kitchen) -> dict[Pose, list[Pose]]:
    """From which poses one move leads to each pose."""
    before: dict[Pose, list[Pose]] = {}
    for cell, facing in _poses(kitchen):
        for move in range(len(DIRECTIONS)):
            ahead = _ahead((cell, move))
            after = (ahead if kitchen.kind(ahead) == FLOOR else cell, move)
            before.setdefault(after, []).append((cell, facing))
    return before
