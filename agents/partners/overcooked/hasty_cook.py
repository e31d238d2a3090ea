"""Does the whole task, but starts every pot as soon as anything is in it, complete or not."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, carried, first_memory, take_turn
from jaxscope.agents.partners.overcooked._whole_task import whole_task
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """With the old dynamics, in which nobody can start a pot, it does what `greedy` does.

    Asks of a cooperator to complete pots before it gets there, or to serve what is worth nothing and cook apart.
    """
    del env, view
    scene = yield Look()
    return take_turn(scene, memory, whole_task(scene, carried(scene, memory), lambda pot: pot.startable), key)
