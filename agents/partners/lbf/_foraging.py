"""Going somewhere: to a target, or from waypoint to waypoint while there is none."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from jaxscope.agents.partners.lbf._navigation import Board, Cells, either, first_step, union
from jaxscope.agents.partners.lbf._scene import Scene, Target, distance
from jaxscope.envs.lbf import LBF, LOAD, NONE


class Waypoint(NamedTuple):
    """The memory of a player that wanders while it has no target."""

    cell: Int[Array, "2"]  # where it is wandering to; (-1, -1): nowhere yet


class Step(NamedTuple):
    """One step towards a target."""

    action: Int[Array, ""]  # a move; NONE on arrival or when blocked
    arrived: Bool[Array, ""]  # the player stands beside its target
    waypoint: Int[Array, "2"]


def nowhere() -> Int[Array, "2"]:
    """The cell that stands for none."""
    return jnp.full(2, -1, jnp.int32)


def is_somewhere(cell: Int[Array, "2"]) -> Bool[Array, ""]:
    return cell[0] >= 0


def first_waypoint(env: LBF) -> Waypoint:
    """The memory before the first step of an episode."""
    del env
    return Waypoint(nowhere())


def draw_cell(env: LBF, key: PRNGKeyArray, west: Array | int = 0, east: Array | int | None = None) -> Int[Array, "2"]:
    """A cell drawn uniformly from the columns `west` (included) to `east` (excluded; default: the whole grid)."""
    width = (env.cols if east is None else east) - west
    size = jnp.stack([jnp.float32(env.rows), jnp.asarray(width, jnp.float32)])
    row, col = jnp.floor(jax.random.uniform(key, (2,)) * size).astype(jnp.int32)
    return jnp.stack([row, jnp.int32(west) + col])


def go(
    env: LBF, scene: Scene, goals: Cells, has_goal: Bool[Array, ""], waypoint: Int[Array, "2"], fresh: Int[Array, "2"]
) -> tuple[Int[Array, ""], Int[Array, "2"]]:
    """A step around seen foods and players to the nearest goal, or to the waypoint where there is no goal.

    `fresh` becomes the waypoint where the old one has been reached or could not be. Returns the move (NONE on arrival
    or when blocked) and the waypoint.
    """
    board = Board(env.rows, env.cols)
    waypoint_used = is_somewhere(waypoint) & (distance(waypoint, scene.cell) > 0)
    current = jnp.where(waypoint_used, waypoint, fresh)
    obstacles = [_seen(board, scene.foods, scene.food_seen), _seen(board, scene.players, scene.player_seen)]
    goals = either(has_goal, goals, board.at(current))
    action = first_step(board, scene.cell, goals, union(*obstacles))
    after = jnp.where(action == NONE, nowhere(), current)
    return action, jnp.where(has_goal, waypoint, after)


def approach(env: LBF, scene: Scene, target: Target, waypoint: Int[Array, "2"], key: PRNGKeyArray) -> Step:
    """A step to the nearest free cell beside the target, or to the waypoint where there is no target."""
    board = Board(env.rows, env.cols)
    goals = board.beside(board.at(target.cell))
    action, waypoint = go(env, scene, goals, target.found, waypoint, draw_cell(env, key))
    return Step(action, target.found & (distance(target.cell, scene.cell) == 1), waypoint)


def load_on_arrival(step: Step, ready: Bool[Array, ""] | bool = True) -> Int[Array, ""]:
    """LOAD beside the target once `ready`, NONE there before, and the way to it until then."""
    return jnp.where(step.arrived, jnp.where(ready, jnp.int32(LOAD), jnp.int32(NONE)), step.action)


def _seen(board: Board, cells: Int[Array, "K 2"], seen: Bool[Array, " K"]) -> Cells:
    """The set of the seen ones of `cells`."""
    return union(*(board.at(jnp.where(seen[i], cells[i], nowhere())) for i in range(len(cells))))
