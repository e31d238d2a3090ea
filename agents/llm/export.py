"""Parameters written as a Hugging Face folder, which transformers and other tools read."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxscope.agents.llm.names import leaves, names, stacked
from jaxscope.agents.llm.safetensors_folder import DTYPES, INDEX, SINGLE

GIBIBYTE = 1 << 30


class _Tensor(NamedTuple):
    """A tensor to write: a leaf, or one layer of it."""

    name: str
    leaf: jax.Array
    layer: int | None
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def write_folder(
    params: Mapping[str, Any],
    config: Mapping[str, Any],
    folder: str | Path,
    period: int,
    tokenizer_files: Mapping[str, bytes] | None = None,
    dtype: Any = None,
    shard_bytes: int = 5 * GIBIBYTE,
) -> Path:
    """Write parameters as `folder`, which then is there as a whole or not at all.

    One tensor at a time is brought to the host.

    Args:
        params: nested dicts of arrays, with the names of `jaxscope.agents.llm.names`.
        config: what config.json shall say; the type of the parameters is added.
        folder: must not exist, or be empty.
        period: after how many layers their kinds repeat.
        tokenizer_files: contents by file name, such as `tokenizer.json`.
        dtype: of all tensors, such as `jnp.bfloat16`; None keeps each parameter's own.
        shard_bytes: the most bytes of tensors in one file; one larger tensor has a file of its own.

    Raises:
        ValueError: the folder holds something, a file's name is no plain one or taken, parameters are of a type that
            safetensors do not know, or this process does not hold all of them.
    """
    folder = Path(folder)
    files = dict(tokenizer_files or {})
    _check(folder, files)
    tensors = _tensors(params, period, dtype)
    content = {key: value for key, value in config.items() if key != "dtype"}  # the newer name of the same
    content["torch_dtype"] = max(tensors, key=lambda tensor: tensor.size).dtype.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in files.items():
            (part / name).write_bytes(data)
        (part / "config.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        _write_shards(_shards(tensors, shard_bytes), part)
        part.chmod(0o755)
        part.replace(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _check(folder: Path, files: Mapping[str, bytes]) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder}: is there already; a model is written into a new or an empty folder")
    for name in files:
        taken = name == "config.json" or name.endswith((".safetensors", ".safetensors.index.json"))
        if taken or Path(name).name != name:
            raise ValueError(f"tokenizer_files: {name!r} must be a plain file name, and none of the model's own")


def _tensors(params: Mapping[str, Any], period: int, dtype: Any) -> list[_Tensor]:
    """All tensors of a file in the order of `params`."""
    known = set(DTYPES.values())
    found = []
    for path, leaf in leaves(params).items():
        kind = np.dtype(dtype or leaf.dtype)
        if kind not in known:
            raise ValueError(f"{'/'.join(path)} is of the type {kind}; safetensors know {', '.join(map(str, known))}")
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            raise ValueError(f"{'/'.join(path)} lies on devices of several processes; gather it first")
        called = names(path, leaf.shape, period)
        if stacked(path):
            found += [_Tensor(name, leaf, layer, leaf.shape[1:], kind) for layer, name in enumerate(called)]
        else:
            found.append(_Tensor(called[0], leaf, None, leaf.shape, kind))
    return found


def _shards(tensors: list[_Tensor], shard_bytes: int) -> list[list[_Tensor]]:
    """Tensors in files of at most `shard_bytes`."""
    shards: list[list[_Tensor]] = [[]]
    room = shard_bytes
    for tensor in tensors:
        if tensor.size > room and shards[-1]:
            shards.append([])
            room = shard_bytes
        shards[-1].append(tensor)
        room -= tensor.size
    return shards


def _write_shards(shards: list[list[_Tensor]], folder: Path) -> None:
    if len(shards) == 1:
        _write_safetensors(shards[0], folder / SINGLE)
        return
    file_of = {}
    for number, tensors in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        _write_safetensors(tensors, folder / file)
        file_of |= {tensor.name: file for tensor in tensors}
    total = sum(tensor.size for tensors in shards for tensor in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(file_of.items()))}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n")


def _write_safetensors(tensors: list[_Tensor], path: Path) -> None:
    """Write one file; the layout is told in `jaxscope.agents.llm.safetensors_folder`."""
    code = {dtype: name for name, dtype in DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # older transformers refuse a file that says less
    at = 0
    for tensor in tensors:
        place = [at, at + tensor.size]
        header[tensor.name] = {"dtype": code[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
        at += tensor.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            values = np.asarray(tensor.leaf if tensor.layer is None else tensor.leaf[tensor.layer])
            file.write(np.ascontiguousarray(values.astype(tensor.dtype, copy=False)).reshape(-1).view(np.uint8).data)
        file.flush()
        os.fsync(file.fileno())
