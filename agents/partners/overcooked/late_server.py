"""Waits out of the way until a soup is done, only then fetches a dish, and serves it; never fills or starts a pot."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    fetch_dish,
    first,
    lying_soup,
    put_down,
    serve,
    some,
    to_pot,
)
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """A dish in hand for which no soup is done goes to the nearest counter."""
    del env, view
    scene = yield Look()
    done = some(pot.ready for pot in scene.pots)
    way = first(
        (scene.has_soup, serve(scene)),
        (scene.has_dish, to_pot(scene, lambda pot: pot.ready)),
        (scene.empty & ~scene.has_pot, lying_soup(scene)),
        (scene.empty & done, fetch_dish(scene, also_lying=True)),
        (scene.empty, scene.out_of_the_way),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
