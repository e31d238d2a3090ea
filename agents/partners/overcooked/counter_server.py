"""Serves soups with dishes that others have put on counters, or soups that lie there; never goes to a dispenser."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    first,
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
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """It waits near a pot while no dish lies on a counter.

    Asks of a cooperator to cook and to put down a dish for every soup.
    """
    del env, view
    scene = yield Look()
    cooks = some(started(pot) for pot in scene.pots)
    way = first(
        (scene.has_soup, serve(scene)),
        (scene.has_dish, to_pot(scene, lambda pot: pot.ready)),
        (scene.has_dish, without_touching(to_pot(scene, lambda pot: pot.cooking))),
        (scene.empty & (scene.hatch < NEVER), lying_soup(scene)),
        (scene.empty & cooks, scene.nearest.dish),
        (scene.empty | scene.has_dish, scene.by_a_pot),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
