"""What a pot still needs to become the most valuable soup that it can: a table by recipe."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Int

from jaxscope.envs.overcooked import Overcooked, kitchens, objects, tables

ONION_WANTED, TOMATO_WANTED, COMPLETE = 1, 2, 4


@functools.cache
def needs(env: Overcooked) -> Int[np.ndarray, "L 64"]:
    """By recipe in a pot that was not started: which ingredients keep its best value in reach, or that it is complete.

    What can become nothing of value takes whatever there is, and is complete when it takes no more. Only ingredients
    that the kitchen has count.
    """
    values = tables(env).value
    return np.stack([_needs(env, layout, value) for layout, value in zip(env.layouts, values, strict=True)])


def _needs(env: Overcooked, layout: str, value: np.ndarray) -> Int[np.ndarray, "64"]:
    kinds = {kitchens.ONIONS: (1, 0, ONION_WANTED), kitchens.TOMATOES: (0, 1, TOMATO_WANTED)}
    stock = [more for kind, more in kinds.items() if kitchens.kitchen(layout).tiles(kind)]
    most = env.max_num_ingredients
    amounts = [(onions, tomatoes) for onions in range(most + 1) for tomatoes in range(most + 1 - onions)]
    best = {amount: float(value[objects.recipe(*amount)]) for amount in amounts}
    found = np.zeros(objects.RECIPES, np.int32)
    for onions, tomatoes in sorted(amounts, key=sum, reverse=True):
        own = best[onions, tomatoes]
        after = {(o, t, bit): best[onions + o, tomatoes + t] for o, t, bit in stock if onions + tomatoes < most}
        reachable = max([own, *after.values()])
        best[onions, tomatoes] = reachable
        complete = onions + tomatoes > 0 and (not after or own == reachable > 0)
        wanted = sum(bit for (_, _, bit), worth in after.items() if worth == reachable)
        found[objects.recipe(onions, tomatoes)] = COMPLETE if complete else wanted
    return found
