"""Waits out of the way with a dish until a soup is done, takes it from the pot and serves it; never fills or starts."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    fetch_dish,
    first,
    hand_over,
    lying_soup,
    put_down,
    serve,
    to_pot,
)
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """Where it can use no pot, it hands dishes over and serves the soups that it is given."""
    del env, view
    scene = yield Look()
    way = first(
        (scene.has_soup, serve(scene)),
        (scene.has_dish, to_pot(scene, lambda pot: pot.ready)),
        (scene.has_dish & ~scene.has_pot, hand_over(scene)),
        (scene.empty & ~scene.has_pot, lying_soup(scene)),
        (scene.empty, fetch_dish(scene)),
        (scene.empty | scene.has_dish, scene.out_of_the_way),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
