"""Does the whole task, but only with stations and counters of the left half; hands the rest over in the middle."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, carried, first_memory, take_turn
from jaxscope.agents.partners.overcooked._ways import WEST_HALF
from jaxscope.agents.partners.overcooked._whole_task import whole_task
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """The middle column belongs to both halves. On its way to its own stations it may cross the other half.

    Asks of a cooperator to do what the left half has no station for.
    """
    del env, view
    scene = yield Look(WEST_HALF)
    return take_turn(scene, memory, whole_task(scene, carried(scene, memory)), key)
