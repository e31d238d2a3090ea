"""Carries dishes, and nothing else, to the counters nearest to pots: as many as there are pots."""

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope.agents.partners.overcooked._errands import first, put_down, to_best_counter
from jaxscope.agents.partners.overcooked._scene import Look
from jaxscope.agents.partners.overcooked._turn import Memory, Turn, first_memory, take_turn
from jaxscope.envs.overcooked import Overcooked, objects
from jaxscope.types import View

ROLE = "training"
initial_memory = first_memory


def act(env: Overcooked, memory: Memory, view: View, key: PRNGKeyArray) -> Turn:
    """It waits out of the way while enough dishes lie there.

    Asks of a cooperator to cook and to take its dishes from counters.
    """
    del env, view
    scene = yield Look()
    lying = jnp.sum(scene.contents == objects.DISH, dtype=jnp.int32)
    # Who can use no pot carries them to those who can.
    suits = (scene.contents == 0) & (scene.has_pot | scene.shared)
    way = first(
        (scene.has_dish, to_best_counter(scene, suits, scene.pot_distance)),
        (scene.empty & (lying < scene.num_pots), scene.dishes),
        (scene.empty | scene.has_dish, scene.out_of_the_way),
        (True, put_down(scene)),
    )
    return take_turn(scene, memory, way, key)
