"""Placing learners on several devices.

The program is the same on any number of devices: arrays are placed, and XLA's partitioner adds the communication. So
one device and many agree up to the order of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxscope.placement import ENVIRONMENTS
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


def shard(learners: PyTree, partition: Callable[[PyTree], PyTree], devices: int) -> PyTree:
    """Learners `[S, ...]` spread over the first `devices` devices: by seed where seeds divide evenly, else by
    environment, with weights on every device.

    Abstract learners get the sharding noted in their shapes.

    Args:
        partition: the method's own; gives the axes of one learner that hold environments.

    Raises:
        ValueError: there are fewer devices, or neither seeds nor environments divide evenly.
    """
    if devices == 1:
        return learners
    axes = partition(learners)
    mesh = mesh_of(devices, *_sizes(learners, axes))
    if mesh.axis_names == (SEEDS,):
        return _place(learners, mesh, PartitionSpec(SEEDS))
    return jax.tree.map(lambda spec, part: _place(part, mesh, PartitionSpec(None, *spec)), axes, learners)


def _sizes(learners: PyTree, axes: PyTree) -> tuple[int, int]:
    """Seeds, and the number that must divide wherever environments are an axis."""
    seeds = {leaf.shape[0] for leaf in jax.tree.leaves(learners)}
    assert len(seeds) == 1, seeds
    by_part = jax.tree.map(
        lambda spec, part: (
            [leaf.shape[1 + spec.index(ENVIRONMENTS)] for leaf in jax.tree.leaves(part)] if ENVIRONMENTS in spec else []
        ),
        axes,
        learners,
    )
    sizes = jax.tree.leaves(by_part)
    return seeds.pop(), math.gcd(*sizes) if sizes else 1  # 1: there are no environments to spread


def _place(tree: PyTree, mesh: Mesh, spec: PartitionSpec) -> PyTree:
    """`tree` with every leaf spread over the mesh as `spec` says."""
    sharding = NamedSharding(mesh, spec)

    def place(leaf):
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
        return jax.device_put(leaf, sharding)

    return jax.tree.map(place, tree)
