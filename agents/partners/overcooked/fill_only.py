"""Fetches ingredients and puts them into pots, and nothing else: it neither starts pots nor serves."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import bring_ingredient, fetch_ingredient, first, put_down
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "held-out"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """While no pot takes more it waits out of the way, with the next ingredient in hand."""
    del env, view
    scene = yield Look()
    way = first(
        (scene.empty, fetch_ingredient(scene)),
        (scene.has_ingredient, bring_ingredient(scene)),
        (scene.empty | scene.has_ingredient, scene.out_of_the_way),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
