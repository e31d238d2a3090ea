"""A chef's turn: the first action of its way, or a step aside where chefs have got into each other's way."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import action_of
from jaxscope.agents.partners.overcooked._scene import Look, Scene, Way
from jaxscope.envs.overcooked import INTERACT, STAY, Overcooked

#: Steps without getting anywhere after which a chef may step aside: while it wants to walk, and while it wants to stay
#: and another chef stands before it and looks at it.
WALKING_PATIENCE = 2
STAYING_PATIENCE = 6
#: Steps with the same thing in hand after which a jam is so serious that a chef may walk away from it, and how far.
SERIOUS = 20
RETREAT = 6
LONG = 1 << 20


#: A rule that asks for its scene once and then takes its turn.
Turn = Generator[Look, Scene, tuple[Int[Array, ""], Any]]


class Memory(NamedTuple):
    """What every chef remembers."""

    cell: Int[Array, ""]  # where it stood at its last turn; -1: there was none
    cell_before: Int[Array, ""]  # and at the one before
    action: Int[Array, ""]  # what it did then
    jammed: Int[Array, ""]  # steps for which it has got nowhere although it or another chef wanted to
    held: Int[Array, ""]  # what it held then
    carried: Int[Array, ""]  # steps for which it has held that
    retreat: Int[Array, ""]  # steps that it still walks away from the other chef


def first_memory(env: Overcooked) -> Memory:
    """The memory before the first step of an episode."""
    del env
    nowhere, zero = jnp.int32(-1), jnp.int32(0)
    return Memory(nowhere, nowhere, jnp.int32(STAY), zero, zero, zero, zero)


def carried(scene: Scene, memory: Memory) -> Int[Array, ""]:
    """Steps for which the chef has held what it holds now."""
    return jnp.where(scene.held == memory.held, jnp.minimum(memory.carried + 1, LONG), 0)


def take_turn(scene: Scene, memory: Memory, way: Way, key: PRNGKeyArray) -> tuple[Int[Array, ""], Memory]:
    """The action, and what to remember.

    A chef that is jammed moves or stays at random with probability 1/2, all five ways equally likely. Jams are of two
    kinds: nobody moves, or both walk to and fro because each finds a way around the other. Where that does not help,
    as in a corridor that is one tile wide, it walks away from the other chef for some steps now and then.
    """
    action = action_of(way)
    pressed = scene.mate.ahead == scene.cell
    stuck = (scene.cell == memory.cell) & ((memory.action < STAY) | pressed)
    turned_back = (scene.cell == memory.cell_before) & (scene.cell != memory.cell)
    jammed = jnp.where(stuck | turned_back, jnp.minimum(memory.jammed + 1, LONG), 0)
    patience = jnp.where(action < STAY, WALKING_PATIENCE, STAYING_PATIENCE)
    draw = jax.random.randint(key, (), 0, 8 * (STAY + 1), jnp.int32)  # the first half of it: step aside
    steps_aside = (jammed >= patience) & (action != INTERACT) & (draw < 4 * (STAY + 1))
    held_for = carried(scene, memory)
    retreat = jnp.where(steps_aside & (held_for > SERIOUS) & (draw <= STAY), RETREAT, memory.retreat)
    retreat = jnp.where(action == INTERACT, 0, retreat)
    action = jnp.where(steps_aside, draw % (STAY + 1), action)
    action = jnp.where(retreat > 0, action_of(scene.away), action)
    after = Memory(scene.cell, memory.cell, action, jammed, scene.held, held_for, jnp.maximum(retreat - 1, 0))
    return action, after
