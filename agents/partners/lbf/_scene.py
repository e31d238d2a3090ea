"""What a player sees, and choosing among what it sees.

A food counts as seen by the rule of the reference: at a Chebyshev distance of at most the sight. For other players the
same distance is used, without the reference's wider range near the north and west borders.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Num

from jaxscope.envs.lbf import LBF
from jaxscope.types import View


class Scene(NamedTuple):
    """One player's view of a state. Arrays keep all players and foods; what is not marked as seen must not be used."""

    cell: Int[Array, "2"]  # where this player stands
    level: Int[Array, ""]  # what it can lift alone
    players: Int[Array, "A 2"]
    player_seen: Bool[Array, " A"]  # other players in sight, never itself
    foods: Int[Array, "F 2"]  # in reading order
    food_level: Int[Array, " F"]
    food_seen: Bool[Array, " F"]  # in sight and not eaten
    food_gone: Bool[Array, " F"]  # its cell is in sight and empty


class Target(NamedTuple):
    """A choice among foods or players."""

    found: Bool[Array, ""]  # False: there was nothing to choose from; the rest means nothing
    index: Int[Array, ""]
    cell: Int[Array, "2"]


def look(env: LBF, view: View) -> Scene:
    """The scene before the player of `view`."""
    state = view.state
    self = jnp.arange(env.num_agents) == view.seat
    # A chain of selects is cheaper than an index that differs between games.
    cell, level = state.position[0], state.level[0]
    for seat in range(1, env.num_agents):
        cell = jnp.where(view.seat == seat, state.position[seat], cell)
        level = jnp.where(view.seat == seat, state.level[seat], level)
    near_food = _in_sight(env, cell, state.food_position)
    return Scene(
        cell=cell,
        level=level,
        players=state.position,
        player_seen=_in_sight(env, cell, state.position) & ~self,
        foods=state.food_position,
        food_level=state.food_level,
        food_seen=near_food & (state.food_level > 0),
        food_gone=near_food & (state.food_level <= 0),
    )


def distance(cells: Int[Array, "*K 2"], cell: Int[Array, "2"]) -> Int[Array, "*K"]:
    """Manhattan distances from `cells` to `cell`."""
    rows, cols = _offsets(cells, cell)
    return rows + cols


def choose(score: Num[Array, " K"], allowed: Bool[Array, " K"], cells: Int[Array, "K 2"]) -> Target:
    """The allowed one of lowest score, the first of equals (foods: in reading order)."""
    target = Target(allowed[0], jnp.int32(0), cells[0])
    best = score[0]
    for index in range(1, len(cells)):
        better = allowed[index] & (~target.found | (score[index] < best))
        best = jnp.where(better, score[index], best)
        target = Target(
            target.found | allowed[index],
            jnp.where(better, jnp.int32(index), target.index),
            jnp.where(better, cells[index], target.cell),
        )
    return target


def nearest_food(scene: Scene, cell: Int[Array, "2"]) -> Target:
    """The seen food nearest to `cell`."""
    return choose(distance(scene.foods, cell), scene.food_seen, scene.foods)


def nearest_player(scene: Scene) -> Target:
    """The seen other player nearest to this one, the lowest seat of equals: *the* teammate in games of several."""
    return choose(distance(scene.players, scene.cell), scene.player_seen, scene.players)


def accompanied(scene: Scene, cell: Int[Array, "2"]) -> Bool[Array, ""]:
    """Whether another player, in sight, stands beside `cell`."""
    return jnp.any(scene.player_seen & (distance(scene.players, cell) == 1))


def _in_sight(env: LBF, cell: Int[Array, "2"], cells: Int[Array, "K 2"]) -> Bool[Array, " K"]:
    if env.sight is None:
        return jnp.ones(len(cells), bool)
    rows, cols = _offsets(cells, cell)
    return jnp.maximum(rows, cols) <= env.sight


def _offsets(cells: Int[Array, "*K 2"], cell: Int[Array, "2"]) -> tuple[Int[Array, "*K"], Int[Array, "*K"]]:
    """Rows and columns between `cells` and `cell`; two terms instead of a reduction over an axis of two, for speed."""
    return jnp.abs(cells[..., 0] - cell[0]), jnp.abs(cells[..., 1] - cell[1])
