"""Goes to the landmark nearest to the midpoint of itself and its teammate, chosen anew every step."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import midpoint, steer
from jaxscope.agents.partners.pmr._scene import Turn, look, nearest
from jaxscope.envs.pmr import PMR
from jaxscope.types import PyTree, View

ROLE = "training"


def act(env: PMR, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """Asks of a cooperator to pull the two of them clearly to one side; no memory."""
    del key
    scene = look(view)
    return steer(scene.own, nearest(env, midpoint(scene.own, scene.mate)).place), memory
