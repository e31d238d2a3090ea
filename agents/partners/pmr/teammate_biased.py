"""Goes to the landmark nearest to its teammate, chosen anew every step."""

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import steer
from jaxscope.agents.partners.pmr._scene import Turn, look, nearest
from jaxscope.envs.pmr import PMR
from jaxscope.types import PyTree, View

ROLE = "held-out"


def act(env: PMR, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
    """PopGen's Teammate-Biased Landmark; no memory."""
    del key
    scene = look(view)
    return steer(scene.own, nearest(env, scene.mate).place), memory
