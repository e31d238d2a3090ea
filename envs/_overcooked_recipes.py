"""What soups are worth and how long they cook: tables by recipe, see `_overcooked_objects.recipe`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from . import _overcooked_objects as objects

#: Settings of which at most one kind may be given; the first that is given decides.
VALUES = (("delivery_reward",), ("recipe_values",), ("onion_value", "tomato_value"))
TIMES = (("cook_time",), ("recipe_times",), ("onion_time", "tomato_time"))
DEFAULT_ORDERS = "ooo"
DEFAULT_BONUS = 2.0
DEFAULT_VALUE = 20.0
DEFAULT_TIME = 20
FULL_WITH_OLD_DYNAMICS = 3

Amounts = tuple[int, int]  # onions, tomatoes


class Recipes(NamedTuple):
    """By recipe; an impossible recipe has value 0 and a time that is never used."""

    value: Float[np.ndarray, "64"]  # what a delivery pays; 0 for what is not in demand
    best_value: Float[np.ndarray, "64"]  # the highest value that adding ingredients, or none, can reach
    cook_time: Int[np.ndarray, "64"]  # steps
    demanded: list[Amounts]


def recipes(layout: Mapping[str, Any], given: Mapping[str, Any], max_ingredients: int, old_dynamics: bool) -> Recipes:
    """The tables of a layout's settings `combined` with those given.

    Raises:
        ValueError: a setting is out of range, or settings contradict each other.
    """
    settings = combined(layout, given)
    listed = _parse_orders("start_all_orders", settings.get("start_all_orders", DEFAULT_ORDERS), max_ingredients)
    demanded = listed or possible(max_ingredients)
    bonus = _parse_orders("start_bonus_orders", settings.get("start_bonus_orders", ""), max_ingredients)
    if strange := [order for order in bonus if order not in demanded]:
        raise ValueError(f"start_bonus_orders: {spell(strange[0])} is not in start_all_orders")
    if old_dynamics and (short := [order for order in demanded if sum(order) != FULL_WITH_OLD_DYNAMICS]):
        raise ValueError(f"old_dynamics cook soups of 3 ingredients only, but {spell(short[0])} is in demand")
    order_bonus = settings.get("order_bonus", DEFAULT_BONUS)
    if not order_bonus >= 0:
        raise ValueError(f"order_bonus = {order_bonus} must be at least 0")
    worth = _amounts(VALUES, settings, listed, DEFAULT_VALUE, (0, np.inf))
    time = _amounts(TIMES, settings, listed, DEFAULT_TIME, (1, objects.MOST_STEPS))

    value = np.zeros(objects.RECIPES, np.float32)
    cook_time = np.full(objects.RECIPES, DEFAULT_TIME, np.int32)
    for amounts in possible(max_ingredients):
        if time(amounts) > objects.MOST_STEPS:
            raise ValueError(
                f"{spell(amounts)} would cook {time(amounts)} steps, at most {objects.MOST_STEPS} are allowed"
            )
        cook_time[objects.recipe(*amounts)] = time(amounts)
        if amounts in demanded and worth(amounts):
            value[objects.recipe(*amounts)] = worth(amounts) * (order_bonus if amounts in bonus else 1)
    return Recipes(value, _best(value, max_ingredients), cook_time, demanded)


def combined(layout: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A layout's settings, where they are not replaced by those given (None: not given).

    A given value or time replaces all of the layout's settings of values or times.

    Raises:
        ValueError: orders are given without the values or times that the layout lists by order.
    """
    given = {name: value for name, value in given.items() if value is not None}
    kept = dict(layout)
    for kinds in (VALUES, TIMES):
        names = [name for kind in kinds for name in kind if name in kept or name in given]
        lists = [name for name in names if name.startswith("recipe_")]
        if given.keys() & set(names):
            kept = {name: value for name, value in kept.items() if name not in names}
        elif "start_all_orders" in given and lists:
            raise ValueError(f"{lists[0]} of the layout are for its own orders; give {lists[0]} with start_all_orders")
    return kept | given


def possible(max_ingredients: int) -> list[Amounts]:
    """All recipes, those with most ingredients first."""
    return [(size - tomatoes, tomatoes) for size in range(max_ingredients, 0, -1) for tomatoes in range(size + 1)]


def _best(value: Float[np.ndarray, "64"], max_ingredients: int) -> Float[np.ndarray, "64"]:
    best = value.copy()
    for onions, tomatoes in [*possible(max_ingredients), (0, 0)]:
        if onions + tomatoes < max_ingredients:
            more = (best[objects.recipe(onions + 1, tomatoes)], best[objects.recipe(onions, tomatoes + 1)])
            best[objects.recipe(onions, tomatoes)] = max(best[objects.recipe(onions, tomatoes)], *more)
    return best


def _parse_orders(setting: str, text: str, max_ingredients: int) -> list[Amounts]:
    """`ooo,oot` as onions and tomatoes per order, in that order."""
    found: list[Amounts] = []
    for order in text.split(",") if text else ():
        amounts = (order.count("o"), order.count("t"))
        if sum(amounts) != len(order) or not 1 <= len(order) <= max_ingredients:
            raise ValueError(
                f"{setting} = {text!r}: an order is 1 to {max_ingredients} letters, o for onion and t for tomato, "
                f"orders separated by commas; {order!r} is not"
            )
        if amounts in found:
            raise ValueError(f"{setting} = {text!r} has {spell(amounts)} twice")
        found.append(amounts)
    return found


def spell(amounts: Amounts) -> str:
    return "o" * amounts[0] + "t" * amounts[1]


def _amounts(kinds, settings: Mapping[str, Any], orders: list[Amounts], default, bounds):
    """A function from the ingredients of a soup to its value or time."""
    names = [name for kind in kinds for name in kind]
    chosen = {name: settings[name] for name in names if name in settings}
    named = [kind for kind in kinds if chosen.keys() & set(kind)]
    if len(named) > 1:
        raise ValueError(f"{named[0][0]} and {named[1][0]} exclude each other")
    if not named:
        return lambda amounts: default
    kind = named[0]
    if missing := [name for name in kind if name not in chosen]:
        raise ValueError(f"{', '.join(chosen)} needs {missing[0]} too")
    for name, value in chosen.items():
        for entry in value if isinstance(value, tuple) else (value,):
            if not bounds[0] <= entry <= bounds[1]:
                raise ValueError(f"{name} = {value} must lie between {bounds[0]} and {bounds[1]}")
    if len(kind) == 2:
        return lambda amounts: amounts[0] * chosen[kind[0]] + amounts[1] * chosen[kind[1]]
    (amount,) = chosen.values()
    if not kind[0].startswith("recipe_"):
        return lambda amounts: amount
    if not isinstance(amount, tuple) or len(amount) != len(orders):
        raise ValueError(f"{kind[0]} = {amount} must have one entry per order in start_all_orders, {len(orders)}")
    by_order = dict(zip(orders, amount, strict=True))
    return lambda amounts: by_order.get(amounts, default)
