"""Partners that hunt in one half of the plane only."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners._plane import point, rush, steer
from jaxscope.agents.partners.predator_prey._scene import Turn, look, nearest
from jaxscope.envs.predator_prey import PredatorPrey
from jaxscope.types import PyTree, View


def hunter(side: float) -> Callable[[PredatorPrey, PyTree, View, PRNGKeyArray], Turn]:
    """The rule of chasing the nearest visible prey whose `y` has the sign of `side`, and of waiting in the middle of
    that half (at a distance of 0.5 from the origin) for want of any; no memory."""

    def act(env: PredatorPrey, memory: PyTree, view: View, key: PRNGKeyArray) -> Turn:
        del key
        scene = look(env, view)
        here = [seen & (side * prey.y > 0) for seen, prey in zip(scene.seen, scene.prey, strict=True)]
        target = nearest(scene, here)
        waits = steer(scene.own, point(0.0, 0.5 * side))
        return jnp.where(target.found, rush(scene.own, target.place), waits), memory

    return act
