"""Fetches ingredients, fills pots and starts them when they are complete; never touches a dish or a soup."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    bring_ingredient,
    fetch_ingredient,
    first,
    put_down,
    some,
    to_pot,
)
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """It puts the ingredient in hand down to start a pot that another has completed."""
    del env, view
    scene = yield Look()
    to_start = some(pot.complete for pot in scene.pots) & scene.has_pot
    way = first(
        (scene.empty, to_pot(scene, lambda pot: pot.complete)),
        (scene.empty, fetch_ingredient(scene)),
        (scene.has_ingredient, bring_ingredient(scene)),
        (scene.has_ingredient & to_start, put_down(scene)),
        (scene.empty | scene.has_ingredient, scene.out_of_the_way),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
