"""Does the half that its teammate leaves: starts and serves beside one that fills, else fills and starts."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    bring_ingredient,
    fetch_dish,
    fetch_ingredient,
    first,
    hand_over,
    lying_soup,
    put_down,
    serve,
    some,
    started,
    to_pot,
    without_touching,
)
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.agents.partners.overcooked._ways import NEVER
from jaxscope.envs.overcooked import Overcooked, objects
from jaxscope.types import View

ROLE = "training"


class Gap(NamedTuple):
    turn: Memory
    mate_fills: Bool[Array, ""]  # an ingredient was the last thing that the teammate was seen to hold


def initial_memory(env: Overcooked) -> Gap:
    """The memory before the first step of an episode."""
    return Gap(first_memory(env), jnp.zeros((), bool))


def act(env: Overcooked, memory: Gap, view: View, key: PRNGKeyArray) -> Turn:
    """What the teammate held last decides; one that has held nothing yet may serve.

    Asks of a cooperator to keep to its half of the work.
    """
    del env, view
    scene = yield Look()
    held = scene.mate.held
    carries = (held == objects.ONION) | (held == objects.TOMATO)
    # Where both carry ingredients neither gives in, so that two of its kind do not leave the work to each other.
    tells_nothing = (held == 0) | (carries & scene.has_ingredient)
    fills = jnp.where(tells_nothing, memory.mate_fills, carries)
    cooks = some(started(pot) for pot in scene.pots)
    to_start = to_pot(scene, lambda pot: pot.complete)
    way = first(
        (scene.has_soup, serve(scene)),
        (scene.has_dish, to_pot(scene, lambda pot: pot.ready)),
        (scene.has_dish & cooks, without_touching(to_pot(scene, lambda pot: pot.cooking))),
        (scene.has_dish & ~scene.has_pot, hand_over(scene)),
        (~scene.empty & fills & (to_start < NEVER), put_down(scene)),
        (scene.has_ingredient & ~fills, bring_ingredient(scene)),
        (~scene.empty & fills & ~scene.has_dish, put_down(scene)),
        (scene.has_dish & ~fills, put_down(scene)),
        (scene.empty, to_start),
        (scene.empty & fills & (scene.hatch < NEVER), lying_soup(scene)),
        (scene.empty & fills & cooks, fetch_dish(scene, also_lying=True)),
        (scene.empty & ~fills, fetch_ingredient(scene, also_lying=True)),
        (True, scene.by_a_pot),
    )
    action, turn = take_turn(scene, memory.turn, way, key)
    return action, Gap(turn, fills)
