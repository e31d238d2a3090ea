"""Remembering where the teammate was."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxscope.agents.partners.lbf._foraging import nowhere
from jaxscope.agents.partners.lbf._scene import Scene, nearest_player
from jaxscope.envs.lbf import LBF


class Company(NamedTuple):
    """The memory of a player that minds its teammate."""

    waypoint: Int[Array, "2"]  # where it wanders to while it has nowhere to go; (-1, -1): nowhere yet
    last_seen: Int[Array, "2"]  # where it last saw its teammate; (-1, -1): never


def first_company(env: LBF) -> Company:
    """The memory before the first step of an episode."""
    del env
    return Company(nowhere(), nowhere())


def recall(scene: Scene, last_seen: Int[Array, "2"]) -> Int[Array, "2"]:
    """The teammate's cell, where it is in sight, else the cell it was last seen on."""
    mate = nearest_player(scene)
    return jnp.where(mate.found, mate.cell, last_seen)


def forget_if_empty(scene: Scene, last_seen: Int[Array, "2"]) -> Int[Array, "2"]:
    """Nowhere once the player itself stands on the remembered cell, so that it searches elsewhere."""
    return jnp.where(jnp.all(last_seen == scene.cell), nowhere(), last_seen)
