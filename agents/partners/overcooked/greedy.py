"""Does the whole task by need: fetches a dish where a soup has none yet, else starts a complete pot, else fills one."""

from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope.agents.partners.overcooked._scene import look
from jaxscope.agents.partners.overcooked._turn import Memory, carried, first_memory, take_turn
from jaxscope.agents.partners.overcooked._whole_task import whole_task
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> tuple[Int[Array, ""], Memory]:
    """Asks nothing of a cooperator but to do its share."""
    scene = look(env, view)
    return take_turn(scene, memory, whole_task(scene, carried(scene, memory)), key)
