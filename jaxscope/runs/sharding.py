"""Placing learners on several devices.

The program is the same on any number of devices: arrays are placed, and XLA's partitioner adds the communication. So
one device and many agree up to the order of sums.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxscope.placement import ENVIRONMENTS
from jaxscope.ppo import Learner
from jaxscope.types import PyTree

SEEDS = "seeds"


def mesh_of(devices: int, seeds: int, num_envs: int) -> Mesh:
    """The mesh of one axis over which seeds, or else environments, are spread.

    Raises:
        ValueError: there are fewer devices, or neither seeds nor environments divide evenly.
    """
    if devices > jax.device_count():
        raise ValueError(f"devices = {devices}: this machine has {jax.device_count()}")
    if seeds % devices and num_envs % devices:
        raise ValueError(
            f"devices = {devices} divides neither seeds = {seeds} nor num_envs = {num_envs}, one of which it must"
        )
    axis = SEEDS if seeds % devices == 0 else ENVIRONMENTS
    return Mesh(np.asarray(jax.devices()[:devices]), (axis,))


def shard(learners: Learner, devices: int) -> Learner:
    """Learners `[S, ...]` spread over the first `devices` devices: by seed where seeds divide evenly, else by
    environment, with weights on every device.

    Abstract learners get the sharding noted in their shapes.

    Raises:
        ValueError: there are fewer devices, or neither seeds nor environments divide evenly.
    """
    if devices == 1:
        return learners
    seeds, num_envs = learners.play.reset.shape
    mesh = mesh_of(devices, seeds, num_envs)
    if mesh.axis_names == (SEEDS,):
        return _place(learners, mesh, 0)
    replicated = _place(learners, mesh, None)
    play = learners.play
    casting = play.casting
    if casting is not None:
        casting = casting._replace(
            partner=_place(casting.partner, mesh, None),
            seat=_place(casting.seat, mesh, 1),
            memory=_place(casting.memory, mesh, 2),
            countable=_place(casting.countable, mesh, 1),
        )
    by_env = {"env_state": 1, "obs": 2, "reset": 1, "carry": 1, "episode_return": 1, "episode_length": 1}
    placed = {name: _place(getattr(play, name), mesh, axis) for name, axis in by_env.items()}
    return replicated._replace(play=play._replace(**placed, casting=casting))


def _place(tree: PyTree, mesh: Mesh, axis: int | None) -> PyTree:
    """`tree` with the given axis of every leaf spread over the mesh, or the whole on every device."""

    def place(leaf):
        spec = PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, mesh.axis_names[0])
        sharding = NamedSharding(mesh, spec)
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
        return jax.device_put(leaf, sharding)

    return jax.tree.map(place, tree)
