"""Does the whole task by need: fetches a dish where a soup has none yet, else starts a complete pot, else fills one."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, carried, first_memory, take_turn
from jaxscope.agents.partners.overcooked._whole_task import whole_task
from jaxscope.envs.overcooked import Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """Asks nothing of a cooperator but to do its share."""
    del env, view
    scene = yield Look()
    return take_turn(scene, memory, whole_task(scene, carried(scene, memory)), key)
