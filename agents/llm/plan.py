"""Memory that each device needs, before anything is allocated: parameters, training state and caches by layout.

Only what lasts is counted. Activations and the buffers of communication come on top.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from jaxscope.agents.llm import cache as caches
from jaxscope.agents.llm import lora, sharding
from jaxscope.agents.llm.config import check_length
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sharding import Undivided
from jaxscope.types import PyTree

Precision = Literal["float32", "bfloat16"]


class Layout(NamedTuple):
    """Devices on each axis of a mesh."""

    data: int
    fsdp: int
    tensor: int


class Memory(NamedTuple):
    """Bytes on each device."""

    parameters: int
    gradients: int
    """Of what is trained, in its precision."""
    optimiser: int
    """AdamW's two moments in float32, and a float32 copy of trained weights that are of lower precision."""
    cache: int

    @property
    def total(self) -> int:
        return sum(self)


class Row(NamedTuple):
    """A layout and what it costs."""

    layout: Layout
    memory: Memory
    undivided: tuple[Undivided, ...]
    """What the layout does not divide, and every device has whole."""


def layouts(devices: int) -> list[Layout]:
    """Every way to put this many devices on the three axes.

    Raises:
        ValueError: there is no device.
    """
    if devices < 1:
        raise ValueError(f"devices = {devices}: must be at least 1")
    divisors = [n for n in range(1, devices + 1) if devices % n == 0]
    return [
        Layout(data, fsdp, devices // (data * fsdp))
        for data in divisors
        for fsdp in divisors
        if devices % (data * fsdp) == 0
    ]


def plan(model: LanguageModel, devices: int, rows: int, slots: int, precision: Precision = "bfloat16") -> list[Row]:
    """Memory of each device under every layout, the least first.

    Where the model has adapters, they are what is trained, in float32; its weights are frozen and have no gradients.

    Args:
        rows: sequences that are in the cache at once.
        slots: tokens that each has room for.
        precision: of the weights.

    Raises:
        ValueError: there is no device or row, or the model's context is shorter than `slots`.
    """
    if rows < 1:
        raise ValueError(f"rows = {rows}: must be at least 1")
    check_length(model.config, slots)
    weights, trained = _trees(model, jnp.dtype(precision))
    cache = jax.eval_shape(functools.partial(caches.empty, model, rows, slots, precision))
    wide = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.float32), trained)
    copies = 2 + (model.lora is None and precision != "float32")
    found = []
    for layout in layouts(devices):
        sizes = layout._asdict()
        placed = sharding.place(model, weights, sizes)
        of_trained = sharding.place(model, trained, sizes)
        of_cache = sharding.place_cache(model, rows, slots, sizes)
        memory = Memory(
            bytes_of_each(weights, placed.specs, sizes),
            bytes_of_each(trained, of_trained.specs, sizes),
            copies * bytes_of_each(wide, of_trained.specs, sizes),
            bytes_of_each(cache, of_cache.specs, sizes),
        )
        found.append(Row(layout, memory, placed.undivided + of_cache.undivided))
    return sorted(found, key=lambda row: row.memory.total)


def parameters(model: LanguageModel) -> int:
    """How many numbers the weights have, adapters left out."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(lora.split(model.abstract())[0]))


def bytes_of_each(tree: PyTree, specs: PyTree, sizes: dict[str, int]) -> int:
    """Bytes of one device's part of the leaves of `tree`, arrays or their shapes."""
    found = jax.tree.leaves(specs, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec))
    return sum(_part(leaf, spec, sizes) for leaf, spec in zip(jax.tree.leaves(tree), found, strict=True))


def _part(leaf: Any, spec: PartitionSpec, sizes: dict[str, int]) -> int:
    axes = [one for axis in spec if axis is not None for one in ((axis,) if isinstance(axis, str) else axis)]
    return math.prod(leaf.shape) * jnp.dtype(leaf.dtype).itemsize // math.prod(sizes[axis] for axis in axes)


def _trees(model: LanguageModel, precision: jnp.dtype) -> tuple[PyTree, PyTree]:
    """Shapes of all weights, adapters included, and of those that are trained."""
    base, adapters = lora.split(model.abstract())
    base = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, precision), base)
    return (base, base) if model.lora is None else (lora.join(base, adapters), adapters)
