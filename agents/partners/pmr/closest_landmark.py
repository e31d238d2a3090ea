"""Goes to the landmark nearest to itself, chosen anew every step."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import steer
from jaxscope.agents.partners.pmr._scene import Turn, look, nearest
from jaxscope.envs.pmr import PMR
from jaxscope.types import PyTree, View

ROLE = "held-out"


def act(env: PMR, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Closest-Landmark Greedy; no memory."""
    del key
    own = look(view).own
    return steer(own, nearest(env, own).place), memory
