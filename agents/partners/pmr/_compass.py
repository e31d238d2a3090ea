"""Partners that know one landmark only."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import point, steer
from jaxscope.agents.partners.pmr._scene import Turn, look
from jaxscope.envs.pmr import LANDMARKS, PMR
from jaxscope.types import PyTree, View


def always(name: str) -> Callable[[PMR, PyTree, View, PRNGKeyArray], Turn]:
    """The rule of going to the landmark of that name, whatever happens; no memory."""
    index = LANDMARKS.index(name)

    def act(env: PMR, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
        del key
        return steer(look(view).own, point(*env.landmarks[index])), memory

    return act
