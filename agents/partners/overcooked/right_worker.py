"""Does the whole task, but only with stations and counters of the right half; hands the rest over in the middle."""

from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.overcooked._scene import look
from jaxscope.agents.partners.overcooked._turn import Memory, carried, first_memory, take_turn
from jaxscope.agents.partners.overcooked._ways import EAST_HALF
from jaxscope.agents.partners.overcooked._whole_task import whole_task
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Memory]:
    """The middle column belongs to both halves. On its way to its own stations it may cross the other half.

    Asks of a cooperator to do what the right half has no station for.
    """
    scene = look(env, view, EAST_HALF)
    return take_turn(scene, memory, whole_task(scene, carried(scene, memory)), key)
