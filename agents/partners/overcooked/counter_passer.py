"""Lays ingredients, and a dish for each soup, on the counters nearest to pots for others; touches no pot."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    count,
    fetch_ingredient,
    first,
    put_down,
    some,
    started,
    to_best_counter,
    wants_any,
)
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.agents.partners.overcooked._ways import NEVER
from jaxscope.envs.overcooked import Overcooked, objects
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory
MOST_INGREDIENTS = 2  # on counters at a time


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """It waits out of the way while two ingredients lie there and no soup lacks a dish.

    Asks of a cooperator to work from counters.
    """
    del env, view
    scene = yield Look()
    dishes = jnp.sum(scene.contents == objects.DISH, dtype=jnp.int32) + scene.dishes_with_others
    ingredients = jnp.sum((scene.contents == objects.ONION) | (scene.contents == objects.TOMATO), dtype=jnp.int32)
    lacks_dish = count(started(pot) for pot in scene.pots) > dishes
    asks_for_more = some(wants_any(pot) for pot in scene.pots) & (ingredients < MOST_INGREDIENTS)
    # Who can use no pot carries them to those who can.
    suits = (scene.contents == 0) & (scene.has_pot | scene.shared)
    nowhere = jnp.int32(NEVER)
    not_lying = scene._replace(nearest=scene.nearest._replace(onion=nowhere, tomato=nowhere))
    way = first(
        (scene.has_dish | scene.has_ingredient, to_best_counter(scene, suits, scene.pot_distance)),
        (scene.empty & lacks_dish, scene.dishes),
        (scene.empty & asks_for_more, fetch_ingredient(not_lying)),
        (scene.empty | scene.has_ingredient, scene.out_of_the_way),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
