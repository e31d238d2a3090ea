"""Goes to the landmark that was farthest from itself at the start, and stays there."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import steer
from jaxscope.agents.partners.pmr._scene import Commitment, Turn, committed, farthest, look, undecided
from jaxscope.envs.pmr import PMR
from jaxscope.types import View

ROLE = "held-out"
initial_memory = undecided


def act(env: PMR, memory: Commitment, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Farthest-Landmark Commitment: chosen anew each step, the farthest would keep it in the middle."""
    del key
    own = look(view).own
    goal, memory = committed(env, memory, farthest(env, own).index)
    return steer(own, goal), memory
