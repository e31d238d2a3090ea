"""Does the whole task by need, but keeps its distance: waits while another chef comes near, and makes way for it."""

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import action_of
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, carried, first_memory, take_turn
from jaxscope.agents.partners.overcooked._whole_task import whole_task
from jaxscope.envs.overcooked import STAY, Overcooked
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory
NEAR = 2  # steps
CAUTION = 0.7  # chance to give way while another chef is near


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """One that looks at it from beside it, it walks away from.

    Asks of a cooperator not to stand about near stations.
    """
    del env, view
    scene = yield Look()
    pause_key, turn_key = jax.random.split(key)
    way = whole_task(scene, carried(scene, memory))
    near = (scene.mate.cell >= 0) & (scene.mate.apart <= NEAR)
    gives_way = near & (action_of(way) <= STAY) & (jax.random.uniform(pause_key) < CAUTION)
    pressed = scene.mate.ahead == scene.cell
    way = jnp.where(gives_way, jnp.where(pressed, scene.away, STAY), way)
    return take_turn(scene, memory, way, turn_key)
