"""Waits near a pot until it cooks, fetches a dish, waits at the pot until the soup is done and serves it."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    fetch_dish,
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
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """It never fills or starts a pot, and keeps clear of pots that wait to be filled."""
    del env, view
    scene = yield Look()
    cooks = some(started(pot) for pot in scene.pots)
    way = first(
        (scene.has_soup, serve(scene)),
        (scene.has_dish, to_pot(scene, lambda pot: pot.ready)),
        (scene.has_dish, without_touching(to_pot(scene, lambda pot: pot.cooking))),
        (scene.has_dish & ~scene.has_pot, hand_over(scene)),
        (scene.empty & ~scene.has_pot, lying_soup(scene)),
        (scene.empty & cooks, fetch_dish(scene)),
        (scene.empty | scene.has_dish, scene.by_a_pot),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
