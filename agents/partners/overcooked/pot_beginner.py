"""Puts the first ingredient into every empty pot, and nothing else: others must fill up, start and serve."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import (
    bring_ingredient,
    fetch_ingredient,
    first,
    put_down,
    some,
    wants_any,
)
from jaxscope.agents.partners.overcooked._scene import Look, Pot
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """While no pot is empty it waits out of the way, with what it has in hand."""
    del env, view
    scene = yield Look()
    begins = scene._replace(pots=[_if_empty(pot) for pot in scene.pots])
    way = first(
        (scene.empty & some(wants_any(pot) for pot in begins.pots), fetch_ingredient(begins)),
        (scene.has_ingredient, bring_ingredient(begins)),
        (scene.empty | scene.has_ingredient, scene.out_of_the_way),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)


def _if_empty(pot: Pot) -> Pot:
    """The pot as one that wants nothing more once something is in it."""
    return pot._replace(wants_onion=pot.wants_onion & ~pot.idle, wants_tomato=pot.wants_tomato & ~pot.idle)
