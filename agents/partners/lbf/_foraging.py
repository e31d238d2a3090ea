"""Going somewhere: to a target, or from waypoint to waypoint while there is none.

A rule asks for its step, `step = yield approaching(...)`, and is sent it: partners that play together share the search
for the way, which is then compiled and run once for all of them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from jaxscope.agents.partners.lbf._navigation import Board, Cells, either, first_step, union
from jaxscope.agents.partners.lbf._scene import Scene, Target, distance, look
from jaxscope.envs.lbf import LBF, LOAD, NONE
from jaxscope.types import PyTree, View


class Waypoint(NamedTuple):
    """The memory of a player that wanders while it has no target."""

    cell: Int[Array, "2"]  # where it is wandering to; (-1, -1): nowhere yet


class Step(NamedTuple):
    """One step of a walk."""

    action: Int[Array, ""]  # a move; NONE on arrival or when blocked
    arrived: Bool[Array, ""]  # the player stands beside the goal that it was to stand beside
    waypoint: Int[Array, "2"]  # the one to remember


class Walk(NamedTuple):
    """A request for one `Step` to a goal, or to a waypoint where there is no goal; made by `walk`."""

    goal: Int[Array, ""]  # number of the cell, in reading order
    beside: Bool[Array, ""]
    has_goal: Bool[Array, ""]
    waypoint: Int[Array, "2"]
    words: UInt32[Array, " w"]  # of the key for a new waypoint: keys themselves cannot be chosen among
    west: Int[Array, ""]
    east: Int[Array, ""]

    def answer(self, env: LBF, view: View) -> Step:
        return self.step(env, look(env, view))

    def step(self, env: LBF, scene: Scene) -> Step:
        """The step, around seen foods and players."""
        board = Board(env.rows, env.cols)
        waypoint_used = is_somewhere(self.waypoint) & (distance(self.waypoint, scene.cell) > 0)
        current = jnp.where(waypoint_used, self.waypoint, self._fresh(env))
        goal_cell = jnp.stack([self.goal // env.cols, self.goal % env.cols])
        goal = board.at(jnp.where(self.has_goal, goal_cell, current))
        beside = self.has_goal & self.beside
        goals = either(beside, board.beside(goal), goal)
        obstacles = [_seen(board, scene.foods, scene.food_seen), _seen(board, scene.players, scene.player_seen)]
        action = first_step(board, scene.cell, goals, union(*obstacles))
        after = jnp.where(action == NONE, nowhere(), current)
        arrived = beside & (distance(goal_cell, scene.cell) == 1)
        return Step(action, arrived, jnp.where(self.has_goal, self.waypoint, after))

    def _fresh(self, env: LBF) -> Int[Array, "2"]:
        """A cell drawn uniformly from the columns allowed."""
        size = jnp.stack([jnp.float32(env.rows), (self.east - self.west).astype(jnp.float32)])
        row, col = jnp.floor(jax.random.uniform(jax.random.wrap_key_data(self.words), (2,)) * size).astype(jnp.int32)
        return jnp.stack([row, self.west + col])


Walking = Generator[Walk, Step, tuple[Int[Array, ""], PyTree]]  # what a rule returns that asks for its step


def nowhere() -> Int[Array, "2"]:
    """The cell that stands for none."""
    return jnp.full(2, -1, jnp.int32)


def is_somewhere(cell: Int[Array, "2"]) -> Bool[Array, ""]:
    return cell[0] >= 0


def first_waypoint(env: LBF) -> Waypoint:
    """The memory before the first step of an episode."""
    del env
    return Waypoint(nowhere())


def walk(
    env: LBF,
    goal: Int[Array, "2"],
    beside: Bool[Array, ""] | bool,
    has_goal: Bool[Array, ""] | bool,
    waypoint: Int[Array, "2"],
    key: PRNGKeyArray,
    west: Int[Array, ""] | int = 0,
    east: Int[Array, ""] | int | None = None,
) -> Walk:
    """A request for a step to the cell `goal`, or to the waypoint where there is no goal.

    The walk ends on the goal, or on the nearest free cell `beside` it. Where the waypoint has been reached or could
    not be, another is drawn from the columns `west` (included) to `east` (excluded; default: the whole grid).
    """
    east = env.cols if east is None else east
    goal_number = goal[0] * env.cols + goal[1]
    flags = jnp.asarray(beside, bool), jnp.asarray(has_goal, bool)
    return Walk(goal_number, *flags, waypoint, jax.random.key_data(key), jnp.int32(west), jnp.int32(east))


def approaching(env: LBF, target: Target, waypoint: Int[Array, "2"], key: PRNGKeyArray) -> Walk:
    """A request for a step to the nearest free cell beside the target, or to the waypoint where there is no target."""
    return walk(env, target.cell, True, target.found, waypoint, key)


def approach(env: LBF, scene: Scene, target: Target, waypoint: Int[Array, "2"], key: PRNGKeyArray) -> Step:
    """`approaching` answered on the spot, by a search of its own: for a rule that does not ask."""
    return approaching(env, target, waypoint, key).step(env, scene)


def load_on_arrival(step: Step, ready: Bool[Array, ""] | bool = True) -> Int[Array, ""]:
    """LOAD beside the target once `ready`, NONE there before, and the way to it until then."""
    return jnp.where(step.arrived, jnp.where(ready, jnp.int32(LOAD), jnp.int32(NONE)), step.action)


def _seen(board: Board, cells: Int[Array, "K 2"], seen: Bool[Array, " K"]) -> Cells:
    """The set of the seen ones of `cells`."""
    return union(*(board.at(jnp.where(seen[i], cells[i], nowhere())) for i in range(len(cells))))
