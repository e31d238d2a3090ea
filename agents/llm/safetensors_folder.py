"""A folder as Hugging Face writes it: config.json and one safetensors file, or several with an index.

A safetensors file is the length of its header (8 bytes, little-endian), the header (JSON: for every tensor its type,
shape and place in the data), and the data. It is read here through a memory map, since the library's own NumPy reader
gives no slices of bfloat16.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from jaxscope.agents.llm.tensors import Index

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

#: The types of tensors that can be read, by their names in the format.
DTYPES: dict[str, np.dtype] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}


class Entry(NamedTuple):
    """Where a tensor is: bytes `start` up to `stop` of a file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


class SafetensorsFolder:
    """A `TensorSource` over a local folder.

    Attributes:
        config: what config.json says.

    Raises:
        ValueError: the folder, its config.json, its safetensors or one of its shards is missing, or a file is damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise ValueError(f"{folder}: there is no such folder")
        self.config = read_json(self.folder / "config.json")
        self._file_of = shards(self.folder)
        headers = {file: read_header(self.folder / file) for file in sorted(set(self._file_of.values()))}
        for name, file in self._file_of.items():
            if name not in headers[file]:
                raise ValueError(f"{self.folder / file}: has no tensor {name}, which {INDEX} says is there")
        self._entries = {name: headers[file][name] for name, file in self._file_of.items()}
        self._maps = {file: np.memmap(self.folder / file, np.uint8, mode="r") for file in headers}

    def __str__(self) -> str:
        return str(self.folder)

    def names(self) -> list[str]:
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entries[name].shape

    def dtype(self, name: str) -> np.dtype:
        return self._entries[name].dtype

    def read(self, name: str, index: Index = ()) -> np.ndarray:
        entry = self._entries[name]
        data = self._maps[self._file_of[name]][entry.start : entry.stop]
        return np.array(data.view(entry.dtype).reshape(entry.shape)[index], subok=False)

    def close(self) -> None:
        self._maps.clear()


def shards(folder: Path) -> dict[str, str]:
    """The file that holds each tensor of `folder`, by the tensor's name.

    Raises:
        ValueError: there are no safetensors, or the index is damaged or names a file that is not there.
    """
    if (folder / SINGLE).is_file():
        return dict.fromkeys(read_header(folder / SINGLE), SINGLE)
    if not (folder / INDEX).is_file():
        torch = sorted(path.name for path in folder.glob("*.bin"))
        hint = f"; {torch[0]} must be converted to safetensors first" if torch else ""
        raise ValueError(f"{folder}: has neither {SINGLE} nor {INDEX}{hint}")
    file_of = read_json(folder / INDEX).get("weight_map")
    if not isinstance(file_of, dict) or not file_of:
        raise ValueError(f"{folder / INDEX}: has no weight_map")
    for file in dict.fromkeys(file_of.values()):
        if Path(str(file)).name != file:
            raise ValueError(f"{folder / INDEX}: names {file!r}, which is no file of its own folder")
        if not (folder / file).is_file():
            raise ValueError(f"{folder}: {file}, which {INDEX} names, is missing")
    return file_of


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`.

    Raises:
        ValueError: there is no such file, or something else in it.
    """
    if not path.is_file():
        raise ValueError(f"{path.parent}: has no {path.name}")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: is no JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: must be a JSON object")
    return content


def read_header(path: Path) -> dict[str, Entry]:
    """The tensors of one safetensors file.

    Raises:
        ValueError: the file is cut short or damaged, or a tensor is of a type that is not read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = file.read(8)
        (wanted,) = struct.unpack("<Q", length) if len(length) == 8 else (size,)
        if 8 + wanted > size:
            raise ValueError(f"{path}: is cut short or no safetensors file: {size} bytes do not hold its header")
        header = file.read(wanted)
    try:
        content = json.loads(header)
        found = {name: _entry(entry, 8 + wanted) for name, entry in content.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path}: has a damaged header ({error})") from error
    for name, (dtype, shape, start, stop) in found.items():
        if stop > size:
            raise ValueError(f"{path}: is cut short: {name} ends at byte {stop}, the file at {size}")
        if start < 8 + wanted or stop - start != math.prod(shape) * dtype.itemsize or min(shape, default=0) < 0:
            raise ValueError(f"{path}: has a damaged header ({name}: {stop - start} bytes for {dtype} {shape})")
    return found


def _entry(entry: dict[str, Any], data: int) -> Entry:
    """An entry of a header, with its place counted from the beginning of the file."""
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"type {entry['dtype']}, where read are {', '.join(DTYPES)}")
    start, stop = entry["data_offsets"]
    return Entry(DTYPES[entry["dtype"]], tuple(int(n) for n in entry["shape"]), data + int(start), data + int(stop))
