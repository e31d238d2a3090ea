"""Goes to the landmark that was farthest from its teammate at the start, and stays there."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import steer
from jaxscope.agents.partners.pmr._scene import Commitment, Turn, committed, farthest, look, undecided
from jaxscope.envs.pmr import PMR
from jaxscope.types import View

ROLE = "training"
initial_memory = undecided


def act(env: PMR, memory: Commitment, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to come all the way."""
    del key
    scene = look(view)
    goal, memory = committed(env, memory, farthest(env, scene.mate).index)
    return steer(scene.own, goal), memory
