"""Does the whole task, but starts every pot as soon as anything is in it, complete or not."""

from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.overcooked._scene import look
from jaxscope.agents.partners.overcooked._turn import Memory, carried, first_memory, take_turn
from jaxscope.agents.partners.overcooked._whole_task import whole_task
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Memory]:
    """Asks of a cooperator to complete pots before it gets there, or to serve what is worth nothing and cook apart."""
    scene = look(env, view)
    return take_turn(scene, memory, whole_task(scene, carried(scene, memory), lambda pot: pot.idle), key)
