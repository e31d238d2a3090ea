"""Scripted partners of one environment as one policy: its parameter says which of them plays.

What rules ask for (`scripted.Request`) is worked out once, for the one that plays. In a batch whose games have partners
of their own every rule still decides in every game, but the costly part, such as the search for a way, is compiled and
run once, not once per rule.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, UInt32

from jaxscope.agents.scripted import Request, Scripted, Turn
from jaxscope.types import Environment, Policy, PyTree, View

Slots = tuple[Array, ...]


def grouped(members: Sequence[Scripted]) -> tuple[Policy, PyTree]:
    """One policy for K scripted partners of one environment, and their parameters, leaves `[K]`.

    Where all are the same partner, its policy is returned as it is, with parameters `()`.
    """
    distinct = tuple(dict.fromkeys(members))
    if len(distinct) == 1:
        return distinct[0], ()
    return ScriptedGroup(distinct), jnp.asarray([distinct.index(member) for member in members], jnp.int32)


def scripts(policy: Policy, params: PyTree, count: int) -> list[Scripted]:
    """The `count` partners from which `grouped` made `policy` and `params`; none for a learned policy."""
    if isinstance(policy, Scripted):
        return [policy] * count
    if isinstance(policy, ScriptedGroup):
        return [policy.members[index] for index in np.asarray(params)]
    return []


def is_scripted(policy: Policy) -> bool:
    """Whether the members of this policy are scripts, and have no parameters to learn or to keep."""
    return isinstance(policy, Scripted | ScriptedGroup)


@dataclass(frozen=True)
class ScriptedGroup:
    """Different scripted partners of one environment; the parameter is the index of the one that plays."""

    members: tuple[Scripted, ...]

    @property
    def env(self) -> Environment:
        return self.members[0].env

    def initial_memory(self, params: Int[Array, ""]) -> Slots:
        """The memory of the member that plays, in slots that all members share."""
        room = _room(self.members)
        starts = [member.initial_memory(()) for member in self.members]
        blank: dict[int, Array] = {}
        for place, start in zip(room.places, starts, strict=True):
            blank |= dict(zip(place.slots, jax.tree.leaves(start), strict=True))
        blanks = tuple(blank[slot] for slot in range(room.size))
        rows = [place.put(start, blanks) for place, start in zip(room.places, starts, strict=True)]
        return tuple(jnp.stack(slot)[params] for slot in zip(*rows, strict=True))

    def act(self, params: Int[Array, ""], memory: Slots, view: View, key: PRNGKeyArray) -> tuple[Array, Slots]:
        places = _room(self.members).places
        asked = [
            jax.eval_shape(functools.partial(_request, member), place.take(memory), view, key)
            for member, place in zip(self.members, places, strict=True)
        ]
        forms = [_form(request) for request in asked]
        game = memory, view, _Words(jax.random.key_data(key), jax.random.key_impl(key))
        answers = {
            form: self._request(forms, form, params, game).answer(self.env, view)
            for form in dict.fromkeys(forms)
            if form is not None
        }

        def turn_of(member: Scripted, place: _Place, form: Hashable):
            def turn(memory: Slots, view: View, words: _Words) -> tuple[Array, Slots]:
                action, own = _turn(member, place.take(memory), view, words.key(), answers.get(form))
                return action, place.put(own, memory)

            return turn

        turns = [turn_of(*of_member) for of_member in zip(self.members, places, forms, strict=True)]
        return jax.lax.switch(params, turns, *game)

    def _request(self, forms: Sequence[Hashable], form: Hashable, index: Int[Array, ""], game: tuple) -> Request:
        """What member `index` asks for; something of the same form where it does not ask for this."""
        askers = [i for i, of_member in enumerate(forms) if of_member == form]
        places = _room(self.members).places

        def request_of(asker: int):
            member, place = self.members[asker], places[asker]
            return lambda memory, view, words: _request(member, place.take(memory), view, words.key())

        row = np.array([askers.index(i) if i in askers else 0 for i in range(len(forms))], np.int32)
        return jax.lax.switch(jnp.asarray(row)[index], [request_of(asker) for asker in askers], *game)


# Compiled functions only for their cache: a rule is traced once for its request and once for its turn, however often
# and under whatever vmap the group acts.


@functools.partial(jax.jit, static_argnums=0)
def _request(member: Scripted, memory: PyTree, view: View, key: PRNGKeyArray) -> Request | None:
    return member.request(memory, view, key)


@functools.partial(jax.jit, static_argnums=0)
def _turn(member: Scripted, memory: PyTree, view: View, key: PRNGKeyArray, answer: PyTree) -> Turn:
    return member.turn(memory, view, key, lambda request: answer)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["words"], meta_fields=["impl"])
@dataclass(frozen=True)
class _Words:
    """A key as plain numbers: among the operands of a batched `switch` the checker of keys takes it for used twice."""

    words: UInt32[Array, " w"]
    impl: Hashable

    def key(self) -> PRNGKeyArray:
        return jax.random.wrap_key_data(self.words, impl=self.impl)


def _form(request: Request | None) -> Hashable:
    """What requests have in common that can be answered together."""
    if request is None:
        return None
    return jax.tree.structure(request), tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(request))


class _Place(NamedTuple):
    """The slots in which one member keeps its memory."""

    slots: tuple[int, ...]  # of each leaf
    structure: jax.tree_util.PyTreeDef

    def take(self, memory: Slots) -> PyTree:
        return jax.tree.unflatten(self.structure, [memory[slot] for slot in self.slots])

    def put(self, own: PyTree, memory: Slots) -> Slots:
        """`memory` with that of this member in its slots."""
        new = dict(zip(self.slots, jax.tree.leaves(own), strict=True))
        return tuple(new.get(slot, old) for slot, old in enumerate(memory))


class _Room(NamedTuple):
    """Slots that members share, since only one of them plays: as many of each shape as the member with most needs."""

    places: tuple[_Place, ...]
    size: int


@functools.lru_cache(maxsize=64)
def _room(members: tuple[Scripted, ...]) -> _Room:
    slots: dict[Hashable, int] = {}
    places = []
    for member in members:
        leaves, structure = jax.tree.flatten(jax.eval_shape(functools.partial(member.initial_memory, ())))
        seen = collections.Counter()
        own = []
        for leaf in leaves:
            like = (leaf.shape, leaf.dtype)
            own.append(slots.setdefault((like, seen[like]), len(slots)))
            seen[like] += 1
        places.append(_Place(tuple(own), structure))
    return _Room(tuple(places), len(slots))
