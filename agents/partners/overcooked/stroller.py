"""Walks from one random place to another and touches nothing."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import to_cell
from jaxscope.agents.partners.overcooked._scene import Look, random_floor
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.agents.partners.overcooked._ways import is_free
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"


class Stroll(NamedTuple):
    turn: Memory
    goal: Int[Array, ""]  # the cell it walks to; -1: none yet


def initial_memory(env: Overcooked) -> Stroll:
    """The memory before the first step of an episode."""
    return Stroll(first_memory(env), jnp.int32(-1))


def act(env: Overcooked, memory: Stroll, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to do everything, around a chef that may be anywhere."""
    scene = yield Look()
    goal_key, turn_key = jax.random.split(key)
    new = random_floor(env, view, goal_key)
    has_goal = (memory.goal >= 0) & (memory.goal != scene.cell)
    goal = jnp.where(has_goal, memory.goal, new)
    way = to_cell(scene, goal)
    action, turn = take_turn(scene, memory.turn, way, turn_key)
    return action, Stroll(turn, jnp.where(is_free(way), goal, -1))
