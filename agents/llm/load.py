"""Filling a model's parameters from a file, every device reading its own part only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Sharding, SingleDeviceSharding

from jaxscope.agents.llm.names import Path, leaves, names, nested, stacked
from jaxscope.agents.llm.tensors import TensorSource

#: What the names within a model begin with: beside a vision model, alone, or saved without its head.
PREFIXES = ("model.language_model.", "model.", "")

#: Tensors of a file that a text model can do without: rotary frequencies, which follow from the configuration, heads
#: that predict several tokens ahead, and vision.
IGNORED = re.compile(r"(.*\.)?rotary_emb\.inv_freq|mtp\..*|(model\.)?visual\..*")

HEAD, EMBEDDING = ("lm_head", "weight"), ("embed_tokens", "weight")


class _Leaf(NamedTuple):
    """A leaf to fill, and the tensors that it is filled from."""

    shape: tuple[int, ...]
    dtype: np.dtype
    names: list[str]
    stacked: bool


def fill(
    abstract_params: Mapping[str, Any],
    source: TensorSource,
    period: int,
    dtype: Any = None,
    shardings: Mapping[str, Any] | Sharding | None = None,
) -> dict[str, Any]:
    """Parameters with the values of a file.

    Tensor after tensor is read, of each the slices that devices of this process hold, and each distinct slice once. The
    host holds no more at a time than one device's part of one leaf.

    Where embeddings are tied, that is without `lm_head` among the parameters, a file may still have `lm_head.weight`,
    of the same shape as the embeddings: it is ignored, whatever its values.

    Args:
        abstract_params: nested dicts of `jax.ShapeDtypeStruct`, with the names of `jaxscope.agents.llm.names`.
        source: the file.
        period: after how many layers their kinds repeat.
        dtype: of all parameters; None leaves to each its own in `abstract_params`.
        shardings: of each parameter, in dicts like those of `abstract_params`, or one for all; None puts all on the
            default device.

    Raises:
        ValueError: the file lacks tensors, has others, or some of another shape. Nothing has been read then.
    """
    flat = leaves(abstract_params)
    prefix = _prefix(source)
    wanted = {
        path: _Leaf(
            tuple(leaf.shape), np.dtype(dtype or leaf.dtype), names(path, leaf.shape, period, prefix), stacked(path)
        )
        for path, leaf in flat.items()
    }
    _check(wanted, source)
    if isinstance(shardings, Mapping):
        placed = leaves(shardings)
    else:
        placed = dict.fromkeys(flat, shardings or SingleDeviceSharding(jax.devices()[0]))
    return nested({path: _array(leaf, source, placed[path]) for path, leaf in wanted.items()})


def _prefix(source: TensorSource) -> str:
    """The one of `PREFIXES` that the names of `source` have."""
    there = set(source.names())
    return next((prefix for prefix in PREFIXES if prefix + ".".join(EMBEDDING) in there), "model.")


def _check(wanted: dict[Path, _Leaf], source: TensorSource) -> None:
    """Compare names and shapes.

    Raises:
        ValueError: they differ; the one message counts and names what is missing, too much and of another shape.
    """
    shapes = {name: leaf.shape[1:] if leaf.stacked else leaf.shape for leaf in wanted.values() for name in leaf.names}
    there = set(source.names())
    missing = [name for name in shapes if name not in there]
    tied = HEAD not in wanted and EMBEDDING in wanted
    extra = []
    for name in sorted(there - shapes.keys()):
        tied_head = tied and name == ".".join(HEAD) and source.shape(name) == wanted[EMBEDDING].shape
        if not tied_head and not IGNORED.fullmatch(name):
            extra.append(name)
    other = [
        f"{name} {list(source.shape(name))} for {list(shape)}"
        for name, shape in shapes.items()
        if name in there and source.shape(name) != shape
    ]
    found = {"missing": missing, "not of this model": extra, "of another shape": other}
    if any(found.values()):
        said = [f"{len(cases)} {what} ({_some(cases)})" for what, cases in found.items() if cases]
        raise ValueError(f"{source}: its tensors do not fit the configuration: {'; '.join(said)}")


def _some(cases: list[str], most: int = 3) -> str:
    return ", ".join(cases[:most]) + (", ..." if len(cases) > most else "")


def _array(leaf: _Leaf, source: TensorSource, sharding: Sharding) -> jax.Array:
    """A leaf as an array, each device's part put there as soon as it is read."""
    parts: dict[Any, jax.Array] = {}
    indices = sharding.addressable_devices_indices_map(leaf.shape)
    by_part: dict[tuple[tuple[int, int], ...], list[Any]] = {}
    for device, index in indices.items():
        ends = tuple(cut.indices(size)[:2] for cut, size in zip(index or (), leaf.shape, strict=True))
        by_part.setdefault(ends, []).append(device)
    for ends, holders in by_part.items():
        part = _read(leaf, source, tuple(slice(*pair) for pair in ends))
        parts |= {device: jax.device_put(part, device) for device in holders}
    return jax.make_array_from_single_device_arrays(leaf.shape, sharding, [parts[device] for device in indices])


def _read(leaf: _Leaf, source: TensorSource, index: tuple[slice, ...]) -> np.ndarray:
    """A part of a leaf, layer by layer where it has layers."""
    if not leaf.stacked:
        return source.read(leaf.names[0], index).astype(leaf.dtype, copy=False)
    layers, *inner = index
    part = np.empty([cut.stop - cut.start for cut in index], leaf.dtype)
    for place, name in enumerate(leaf.names[layers]):
        part[place] = source.read(name, tuple(inner))
    return part
