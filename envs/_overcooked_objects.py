"""How things are written down: one integer for whatever lies on a tile or is held, 0 for nothing.

The bits of that integer are the object layers of the lossless observation, so the observation is only unpacked, and a
pot cooks by a subtraction:

    0-2    onions in a pot that was not started       12-24  steps that a soup still cooks
    3-5    tomatoes in a pot that was not started     25     soup done
    6-8    onions in a soup that was started          26     dish
    9-11   tomatoes in a soup that was started        27     onion
                                                      28     tomato
"""

from __future__ import annotations

from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

ONE_STEP = 1 << 12
DONE = 1 << 25
DISH = 1 << 26
ONION = 1 << 27
TOMATO = 1 << 28

#: First bit and number of bits of every object layer, in the order of the observation's layers 16 to 24.
LAYERS = ((0, 3), (3, 3), (6, 3), (9, 3), (12, 13), (25, 1), (26, 1), (27, 1), (28, 1))
#: Where these can show: an unstarted pot's ingredients, a started soup, one that still cooks, or a loose thing.
LAYER_KINDS = ("waiting", "waiting", "soup", "soup", "cooking", "soup", "loose", "loose", "loose")
#: Number of recipes that `counts` tells apart, impossible ones included.
RECIPES = 64
MOST_INGREDIENTS = 7
MOST_STEPS = (1 << 13) - 1

_STARTED = 6
_ALL_COUNTS = RECIPES - 1
_COOKING = MOST_STEPS * ONE_STEP

Word = TypeVar("Word", int, np.ndarray, Array)


def recipe(num_onions: Word, num_tomatoes: Word) -> Word:
    """The number of a recipe, 0 .. `RECIPES` - 1: the index into tables by recipe."""
    return num_onions + 8 * num_tomatoes


def soup(num_onions: int, num_tomatoes: int, remaining: int = 0) -> int:
    """A soup that was started, done unless steps remain."""
    return recipe(num_onions, num_tomatoes) << _STARTED | (remaining * ONE_STEP if remaining else DONE)


def idle(num_onions: int, num_tomatoes: int) -> int:
    """What a pot holds before it is started."""
    return recipe(num_onions, num_tomatoes)


def waiting_recipe(word: Word) -> Word:
    """The recipe in a pot that was not started; 0 for everything else."""
    return word & _ALL_COUNTS


def started_recipe(word: Word) -> Word:
    """The recipe of a soup that was started; 0 for everything else."""
    return (word >> _STARTED) & _ALL_COUNTS


def size(of_recipe: Word) -> Word:
    """The number of ingredients of a recipe."""
    return (of_recipe & 7) + (of_recipe >> 3)


def remaining(word: Word) -> Word:
    """Steps that a soup still cooks."""
    return (word >> 12) & MOST_STEPS


def started(of_recipe: Int[Array, "*n"], cook_time: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """A pot at the moment in which it is started."""
    return (of_recipe << _STARTED) | (cook_time * ONE_STEP)


def finished(of_recipe: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """A soup of a recipe to be served."""
    return (of_recipe << _STARTED) | DONE


def cooked(word: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """One step later: what cooks has a step less to go, and is done after the last."""
    left = jnp.where(is_cooking(word), word - ONE_STEP, word)
    return jnp.where(is_cooking(word) & ~is_cooking(left), left | DONE, left)


def is_cooking(word: Int[Array, "*n"]) -> Bool[Array, "*n"]:
    return (word & _COOKING) != 0


def is_done(word: Int[Array, "*n"]) -> Bool[Array, "*n"]:
    """Whether it is a soup to be served: ready in a pot, held, or on a counter."""
    return (word & DONE) != 0
