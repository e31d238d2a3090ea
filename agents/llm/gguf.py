"""GGUF files, versions 2 and 3: metadata and tensors of a model, often quantised, in one file.

The file is a magic word and counts, key-value pairs, a table of tensors, and their data; all little-endian. Shapes are
stored innermost axis first and are given here outermost first, as NumPy has them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxscope.agents.llm.gguf_blocks import TYPES, UNREAD, TensorType

#: NumPy's names for the types of numbers in the metadata, by their numbers in the format.
NUMBERS = dict(enumerate(("u1", "i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?"))) | {10: "<u8", 11: "<i8", 12: "<f8"}
STRING, ARRAY = 8, 9


class Tensor(NamedTuple):
    """A tensor of a GGUF file: its data begin at byte `start`."""

    type: TensorType
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) // self.type.weights * self.type.bytes


class GgufFile:
    """A `TensorSource` over one file, with the names that GGUF gives to tensors.

    Attributes:
        metadata: the key-value pairs; arrays are lists.
        tensors: types, shapes and places.

    Raises:
        ValueError: there is no such file, it is no GGUF or a damaged one, or it has tensors of a type that is not read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise ValueError(f"{path}: there is no such file")
        size = self.path.stat().st_size
        self._data = np.memmap(self.path, np.uint8, mode="r") if size else np.zeros(0, np.uint8)
        try:
            self.metadata, self.tensors = _parse(_Cursor(self._data.data))
        except (_DamagedError, struct.error, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: {error if isinstance(error, _DamagedError) else _DAMAGED}") from error
        for name, tensor in self.tensors.items():
            if tensor.start + tensor.size > size:
                ends = tensor.start + tensor.size
                raise ValueError(f"{path}: is cut short: {name} ends at byte {ends}, the file at {size}")

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str]:
        return list(self.tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def dtype(self, name: str) -> np.dtype:
        return self.tensors[name].type.dtype

    def read(self, name: str, index: Sequence[Any] = ()) -> np.ndarray:
        """A part of a tensor, dequantised. On other axes than the last, `index` may be an array in place of a slice."""
        kind, shape, start = tensor = self.tensors[name]
        data = self._data[start : start + tensor.size]
        if kind.dequantise is None:
            return np.array(data.view(kind.dtype).reshape(shape)[tuple(index)], subok=False)
        blocks = np.asarray(data).reshape(*shape[:-1], shape[-1] // kind.weights, kind.bytes)
        last = index[len(shape) - 1] if len(index) == len(shape) else slice(None)
        first, stop, _ = last.indices(shape[-1])
        begin, end = first // kind.weights, -(-stop // kind.weights)  # whole blocks that cover the part
        part = blocks[tuple(index[: len(shape) - 1])][..., begin:end, :]
        values = kind.dequantise(part.reshape(-1, kind.bytes))
        values = values.reshape(*part.shape[:-2], (end - begin) * kind.weights)
        return values[..., first - begin * kind.weights : stop - begin * kind.weights]

    def close(self) -> None:
        self._data = np.zeros(0, np.uint8)


class _DamagedError(Exception):
    """What is wrong with a file."""


_DAMAGED = "is a damaged GGUF file, or cut short"


class _Cursor:
    """Reads one value after the other."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def number(self, kind: str) -> Any:
        (value,) = struct.unpack_from(kind, self.data, self.at)
        self.at += struct.calcsize(kind)
        return value

    def raw(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise _DamagedError(_DAMAGED)
        self.at += size
        return self.data[self.at - size : self.at]

    def string(self) -> str:
        return str(self.raw(self.number("<Q")), "utf-8")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in NUMBERS:
            return self.numbers(kind, 1)[0]
        if kind == STRING:
            return self.string()
        if kind != ARRAY or depth > 3:
            raise _DamagedError(_DAMAGED)
        kind, count = self.number("<I"), self.number("<Q")
        if kind in NUMBERS:
            return self.numbers(kind, count)
        return [self.value(kind, depth + 1) for _ in range(count)]

    def numbers(self, kind: int, count: int) -> list:
        dtype = np.dtype(NUMBERS[kind])
        return np.frombuffer(self.raw(count * dtype.itemsize), dtype).tolist()


def _parse(cursor: _Cursor) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The metadata and the table of tensors."""
    if bytes(cursor.data[:4]) != b"GGUF":
        raise _DamagedError("is no GGUF file: it does not begin with GGUF")
    cursor.at = 4
    version = cursor.number("<I")
    if version not in (2, 3):
        big = " (big-endian)" if version and version % 65536 == 0 else ""
        raise _DamagedError(f"is GGUF of version {version}{big}, where 2 and 3 are read")
    tensor_count, pair_count = cursor.number("<Q"), cursor.number("<Q")
    metadata = {}
    for _ in range(pair_count):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.number("<I"))
    if metadata.get("split.count", 1) > 1:
        raise _DamagedError(
            f"is one of {metadata['split.count']} parts: join them with llama.cpp's llama-gguf-split --merge"
        )
    found = dict(_tensor(cursor) for _ in range(tensor_count))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0:
        raise _DamagedError(_DAMAGED)
    data = -(-cursor.at // alignment) * alignment
    return metadata, {name: tensor._replace(start=data + tensor.start) for name, tensor in found.items()}


def _tensor(cursor: _Cursor) -> tuple[str, Tensor]:
    """A line of the table of tensors; its place is counted from the first byte of data."""
    name = cursor.string()
    axes = cursor.number("<I")
    if not 1 <= axes <= 8:
        raise _DamagedError(_DAMAGED)
    shape = tuple(cursor.number("<Q") for _ in range(axes))[::-1]
    number, start = cursor.number("<I"), cursor.number("<Q")
    if number not in TYPES:
        known = ", ".join(kind.name for kind in TYPES.values())
        what = UNREAD.get(number, f"with number {number}")
        raise _DamagedError(f"has tensors of the type {what} ({name}), where read are {known}")
    kind = TYPES[number]
    if shape[-1] % kind.weights:
        raise _DamagedError(_DAMAGED)
    return name, Tensor(kind, shape, start)
