"""Starts every complete pot and does nothing else: waits near a pot meanwhile."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import first, put_down, to_pot
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to do all the carrying."""
    del env, view
    scene = yield Look()
    way = first(
        (~scene.empty, put_down(scene)),
        (True, to_pot(scene, lambda pot: pot.complete)),
        (True, scene.by_a_pot),
    )
    return take_turn(scene, memory, way, key)
