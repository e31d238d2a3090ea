"""The lossless observation: one layer of the kitchen per kind of fact, `[W, H, 16 + 5 A]` for A players.

Layers for a player: its position; the others' positions, one layer each in seat order; its orientation, four
layers (1 at its cell); the others' orientations, four each; pots, counters, onion, tomato and dish dispensers, serving
hatches; onions and tomatoes in pots not started; onions and tomatoes in started pots and in soups held or on counters;
steps that a pot still cooks; soups done (ready in a pot, held, on a counter); dishes, onions and tomatoes held or on
counters; all ones when fewer than 40 steps are left. What is held shows at its holder's cell.

For two players these are the 26 layers of `overcooked_ai`; for another number its scheme goes on in this way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Integer, UInt32

from . import _overcooked_objects as objects
from ._overcooked_kitchen import COUNTER, POT
from ._overcooked_tables import STATIC_LAYERS, Here, Tables

if TYPE_CHECKING:
    from .overcooked import Overcooked, State

#: The last layer is on when fewer steps than these are left.
URGENT = 40
_WORD = 32


def num_layers(num_agents: int) -> int:
    return 5 * num_agents + len(STATIC_LAYERS) + len(objects.LAYERS) + 1


def support(num_agents: int, tables: Tables) -> tuple[int, ...]:
    """Entries of the flattened observation that can differ from 0, whatever the players do.

    Players stand on floor, soups are in the making in pots, and things lie on counters or are held.
    """
    here = {kind: (tables.static >> bit & 1).astype(bool) for bit, kind in enumerate(STATIC_LAYERS)}  # [L, C] each
    floor = tables.static == 0
    things = floor | here[COUNTER]
    by_object = {"waiting": here[POT], "cooking": here[POT], "soup": things | here[POT], "loose": things}
    objects_at = [by_object[kind] for kind in objects.LAYER_KINDS]
    possible = [floor] * (5 * num_agents) + [*here.values()] + objects_at + [np.ones_like(floor)]
    return tuple(np.flatnonzero(np.stack(possible, -1).any(0)).tolist())


def layers(env: Overcooked, here: Here, state: State) -> Integer[Array, "A W H layers"]:
    """The observation of every player.

    A cell's layers are gathered in a few words, which fuse with the step, and unpacked at the end, for all players in
    one expression: put together from one array a player, XLA:CPU would compute them many times slower.
    """
    words = [*_words(env, here, state), _with_held(env, state).astype(jnp.uint32)[None]]
    view = jnp.uint32(0)
    for word, (shift, mask) in zip(words, _unpacking(env.num_agents), strict=True):
        view = view | ((word[:, :, None] >> shift) & mask)
    return view.astype(env.observation_space().dtype).reshape(env.num_agents, env.width, env.height, -1)


def _with_held(env: Overcooked, state: State) -> Array:
    """What lies on each cell or is held there, `[C]`."""
    cells = np.arange(env.width * env.height)
    things = state.contents
    for i in range(env.num_agents):
        things = things + jnp.where(cells == state.cell[i], state.held[i], 0)
    return things


def _words(env: Overcooked, here: Here, state: State) -> list[UInt32[Array, "A C"]]:
    """Players, static layers and urgency, a bit a layer, as each seat sees them."""
    num_agents = env.num_agents
    cells = np.arange(env.width * env.height)
    num_bits = 5 * num_agents + len(STATIC_LAYERS) + 1
    urgent = (env.horizon - state.time < URGENT).astype(jnp.uint32)
    words = []
    for number in range(-(-num_bits // _WORD)):
        first = number * _WORD
        same = _shifted(here.whole(here.tables.static).astype(jnp.uint32), 5 * num_agents - first)
        same |= _shifted(urgent, num_bits - 1 - first)
        word = jnp.broadcast_to(same, (num_agents, len(cells)))
        for player, turns in enumerate(_turns(num_agents)):
            facing = num_agents + 4 * turns + state.orientation[player] - first
            bits = _bit(jnp.asarray(turns - first)) | _bit(facing)
            word = word | jnp.where((cells == state.cell[player])[None], bits[:, None], jnp.uint32(0))
        words.append(word)
    return words


def _turns(num_agents: int) -> Int[np.ndarray, "A A"]:
    """By player and seat: when the seat lists that player. It begins with itself; the others follow in seat order."""
    player, seat = np.indices((num_agents, num_agents), np.int32)
    return np.where(player == seat, 0, player + (player < seat))


def _bit(index: Int[Array, "*n"]) -> UInt32[Array, "*n"]:
    """The word with that bit; nothing when it lies outside of the word."""
    inside = (index >= 0) & (index < _WORD)
    return jnp.where(inside, jnp.uint32(1) << index.clip(0, _WORD - 1).astype(jnp.uint32), jnp.uint32(0))


def _shifted(word: UInt32[Array, "*c"], by: int) -> UInt32[Array, "*c"]:
    if by <= -_WORD or by >= _WORD:
        return jnp.zeros_like(word)
    return word << by if by >= 0 else word >> -by


def _unpacking(num_agents: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For every word, by layer `[1, 1, layers]`: how far to shift it and what to keep then, nothing if of another.

    Adding up all words costs XLA less than choosing one by layer, which it does not turn into vector instructions.
    """
    before = 5 * num_agents + len(STATIC_LAYERS)
    num_words = -(-(before + 1) // _WORD)
    bits = [(bit // _WORD, bit % _WORD, 1) for bit in range(before + 1)]
    things = [(num_words, first, (1 << width) - 1) for first, width in objects.LAYERS]
    rows = [*bits[:before], *things, bits[before]]
    by_word = [
        [(shift, mask) if word == number else (0, 0) for word, shift, mask in rows] for number in range(num_words + 1)
    ]
    tables = [np.array(row, np.uint32) for row in by_word]
    return [(table[None, None, :, 0], table[None, None, :, 1]) for table in tables]
