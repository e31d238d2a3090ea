"""Named events: the 25 of `overcooked_ai`, and ours."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from . import _overcooked_objects as objects
from ._overcooked_dynamics import STAY, Interaction, Pots, Step
from ._overcooked_tables import Here

if TYPE_CHECKING:
    from .overcooked import Overcooked

#: `overcooked_ai`'s. It counts no tomato taken from a dispenser.
REFERENCE_EVENTS = (
    "tomato_pickup",
    "useful_tomato_pickup",
    "tomato_drop",
    "useful_tomato_drop",
    "potting_tomato",
    "onion_pickup",
    "useful_onion_pickup",
    "onion_drop",
    "useful_onion_drop",
    "potting_onion",
    "dish_pickup",
    "useful_dish_pickup",
    "dish_drop",
    "useful_dish_drop",
    "soup_pickup",
    "soup_delivery",
    "soup_drop",
    "optimal_onion_potting",
    "optimal_tomato_potting",
    "viable_onion_potting",
    "viable_tomato_potting",
    "catastrophic_onion_potting",
    "catastrophic_tomato_potting",
    "useless_onion_potting",
    "useless_tomato_potting",
)
#: What that leaves out.
OUR_EVENTS = (
    "pot_start",
    "valid_delivery",  # one that pays
    "invalid_delivery",
    "soup_from_pot",  # soup_pickup counts those from counters too
    "tomato_dispensed",
    "useless_dish_pickup",
    "counter_drop",  # of anything
    "counter_pickup",
    "idle",  # STAY
    "useless_interact",  # without any effect
    "blocked_move",  # onto floor, but for another player
)
EVENTS = (*REFERENCE_EVENTS, *OUR_EVENTS)

_WORD = 32


def events(env: Overcooked, here: Here, action: Int[Array, " A"], done: Step) -> dict[str, Int[Array, " A"]]:
    """0 or 1 per event and player."""
    words = []
    for seat, interaction in enumerate(done.interactions):
        found = _events(env, here, interaction, done.pots)
        found["idle"] = action[seat] == STAY
        found["useless_interact"] = (action[seat] > STAY) & ~found["had_effect"]
        found["blocked_move"] = done.blocked[seat]
        words.append(_packed([found[name] for name in EVENTS]))
    # Unpacked from a few words: a sum per event and player would take XLA seconds to compile.
    bits = (jnp.stack(words)[:, :, None] >> np.arange(_WORD, dtype=np.uint32)[None, None, :]) & 1  # [A, words, 32]
    bits = bits.reshape(len(words), -1).astype(jnp.int32).T
    return {name: bits[number] for number, name in enumerate(EVENTS)}


def _packed(flags: list[Bool[Array, ""]]) -> UInt32[Array, " words"]:
    """Flag i as bit i % 32 of word i // 32."""
    words = []
    for first in range(0, len(flags), _WORD):
        word = jnp.uint32(0)
        for bit, flag in enumerate(flags[first : first + _WORD]):
            word |= flag.astype(jnp.uint32) << bit
        words.append(word)
    return jnp.stack(words)


def _events(env: Overcooked, here: Here, done: Interaction, pots: Pots) -> dict[str, Bool[Array, ""]]:
    two = env.num_agents == 2
    found = {}
    for name, thing in (("onion", objects.ONION), ("tomato", objects.TOMATO), ("dish", objects.DISH)):
        # No event marks a tomato that comes from a dispenser.
        dispensed = (done.dispensed == thing) & (thing != objects.TOMATO)
        found[f"{name}_pickup"] = (done.takes & (done.met == thing)) | dispensed
        found[f"{name}_drop"] = done.drops & (done.held == thing)
        if thing == objects.DISH:
            useful_pickup = done.dish_is_useful
            useful_drop = (pots.full == 0) & ~done.other_has_onion & two
        else:
            useful_pickup = ~(pots.all_full & ~done.other_has_dish) & two
            useful_drop = pots.all_full & ~done.other_has_dish & two
        found[f"useful_{name}_pickup"] = found[f"{name}_pickup"] & useful_pickup
        found[f"useful_{name}_drop"] = found[f"{name}_drop"] & useful_drop
    found["soup_pickup"] = (done.takes & objects.is_done(done.met)) | done.scoops
    found["soup_drop"] = done.drops & objects.is_done(done.held)
    found["soup_delivery"] = done.delivers
    found |= _potting(here, done)

    paid = here.at(here.tables.value, objects.started_recipe(done.held)) > 0
    found["pot_start"] = done.starts
    found["valid_delivery"] = done.delivers & paid
    found["invalid_delivery"] = done.delivers & ~paid
    found["soup_from_pot"] = done.scoops
    found["tomato_dispensed"] = done.dispensed == objects.TOMATO
    found["useless_dish_pickup"] = found["dish_pickup"] & ~found["useful_dish_pickup"]
    found["counter_drop"] = done.drops
    found["counter_pickup"] = done.takes
    effects = (done.drops, done.takes, done.dispensed > 0, done.starts, done.scoops, done.pots, done.delivers)
    found["had_effect"] = functools.reduce(operator.or_, effects)
    return found


def _potting(here: Here, done: Interaction) -> dict[str, Bool[Array, ""]]:
    """How an ingredient changes the best value that its pot can still reach."""
    before = objects.waiting_recipe(done.met)
    found = {}
    for name, thing, more in (
        ("onion", objects.ONION, objects.recipe(1, 0)),
        ("tomato", objects.TOMATO, objects.recipe(0, 1)),
    ):
        added = done.pots & (done.held == thing)
        # Where nothing is added the sum may be no recipe, and is not used.
        old, new = (here.at(here.tables.best_value, r) for r in (before, (before + more) % objects.RECIPES))
        found[f"potting_{name}"] = added
        found[f"optimal_{name}_potting"] = added & (old == new)
        found[f"viable_{name}_potting"] = added & (new > 0)
        found[f"catastrophic_{name}_potting"] = added & (old > 0) & (new == 0)
        found[f"useless_{name}_potting"] = added & (old == 0)
    return found
