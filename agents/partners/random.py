"""Takes every action with equal probability."""

from jaxtyping import Array, PRNGKeyArray

from jaxscope.types import Environment, PyTree, View

ROLE = "bound"


def act(env: Environment, memory: PyTree, view: View, key: PRNGKeyArray) -> tuple[Array, PyTree]:
    """A uniform draw from the action space of the environment; no memory."""
    del view
    return env.action_space().sample(key), memory
