"""Makes one soup after the other by itself: fills a pot, starts it, waits until it is done, then fetches a dish."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    bring_ingredient,
    fetch_dish,
    fetch_ingredient,
    first,
    hand_over,
    put_down,
    serve,
    some,
    started,
    to_pot,
)
from jaxscope.agents.partners.overcooked._scene import Look, only_first_pot
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """Its pot is the first in reading order that it can reach; what others do or hold does not concern it.

    Asks of a cooperator to keep out of its way and to use other pots, or to be faster at its.
    """
    del env, view
    scene = only_first_pot((yield Look()))
    cooks = some(started(pot) for pot in scene.pots)
    ready = some(pot.ready for pot in scene.pots)
    way = first(
        (scene.has_soup, serve(scene)),
        (scene.has_dish, to_pot(scene, lambda pot: pot.ready)),
        (scene.has_dish & ~scene.has_pot, hand_over(scene)),
        (scene.has_dish, put_down(scene)),
        (scene.has_ingredient, bring_ingredient(scene)),
        (scene.has_ingredient, put_down(scene)),
        (scene.empty & ready, fetch_dish(scene)),
        (scene.empty, to_pot(scene, lambda pot: pot.complete)),
        (scene.empty & ~cooks, fetch_ingredient(scene)),
        (True, scene.by_a_pot),
    )
    return take_turn(scene, memory, way, key)
