"""Safetensors folders, against files that the safetensors package wrote."""

import json
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from jaxscope.agents.llm.safetensors_folder import INDEX, SINGLE, SafetensorsFolder
from tests import refusals

TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
TYPES += [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


def tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    drawn = {str(kind): torch.randn(4, 6, 3, generator=generator).to(kind) for kind in TYPES}
    return drawn | {"scalar": torch.tensor(3.5), "none": torch.zeros(0, 2)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    save_file(tensors(), tmp_path / SINGLE, metadata={"format": "pt"})
    return tmp_path


def shard(folder) -> None:
    """Replace the single file by two and an index."""
    (folder / SINGLE).unlink()
    file_of = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(tensors())}
    for file in set(file_of.values()):
        save_file({name: value for name, value in tensors().items() if file_of[name] == file}, folder / file)
    (folder / INDEX).write_text(json.dumps({"weight_map": file_of}))


def same(ours: np.ndarray, theirs: torch.Tensor) -> None:
    assert ours.shape == tuple(theirs.shape)
    assert ours.tobytes() == theirs.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("sharded", [False, True])
def test_every_type_is_read_whole_and_in_parts(folder, sharded):
    if sharded:
        shard(folder)
    source = SafetensorsFolder(folder)
    assert source.config == {"model_type": "llama"}
    assert sorted(source.names()) == sorted(tensors())
    for name, tensor in tensors().items():
        assert source.shape(name) == tuple(tensor.shape)
        assert source.dtype(name) == source.read(name).dtype
        same(source.read(name), tensor)
    for kind in map(str, TYPES):
        same(source.read(kind, (slice(1, 3), slice(2, 5))), tensors()[kind][1:3, 2:5])


def test_what_was_read_outlives_the_source(folder):
    source = SafetensorsFolder(folder)
    part = source.read("torch.bfloat16", (slice(0, 1),))
    source.close()
    (folder / SINGLE).write_bytes(b"")
    same(part, tensors()["torch.bfloat16"][:1])
    with pytest.raises(KeyError):
        source.read("torch.bfloat16")


def refused(folder, *words: str) -> None:
    refusals.refused(SafetensorsFolder, folder, saying=words)


def test_missing_files_are_named(folder, tmp_path):
    refused(tmp_path / "nowhere", "nowhere", "no such folder")
    (folder / "config.json").rename(folder / "other.json")
    refused(folder, "config.json")
    (folder / "other.json").rename(folder / "config.json")
    (folder / SINGLE).rename(folder / "pytorch_model.bin")
    refused(folder, SINGLE, INDEX, "pytorch_model.bin")


def test_a_damaged_config_is_named(folder):
    for content, word in (("{", "no JSON"), ("[1]", "object")):
        (folder / "config.json").write_text(content)
        refused(folder, "config.json", word)


def test_a_file_cut_anywhere_is_refused(folder):
    whole = (folder / SINGLE).read_bytes()
    for size in [*range(0, 1000, 37), len(whole) - 1]:
        (folder / SINGLE).write_bytes(whole[:size])
        refused(folder, SINGLE, "cut short")


def header(folder, content: bytes) -> None:
    (folder / SINGLE).write_bytes(struct.pack("<Q", len(content)) + content + bytes(8))


@pytest.mark.parametrize(
    "content",
    [
        b"no JSON",
        b"[]",
        b'{"a": 3}',
        b'{"a": {"dtype": "F32", "shape": [2]}}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [-2], "data_offsets": [8, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}',
    ],
)
def test_a_damaged_header_is_refused(folder, content):
    header(folder, content)
    refused(folder, SINGLE, "damaged")


def test_an_unknown_type_is_named(folder):
    header(folder, b'{"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}')
    refused(folder, "F4", "BF16")


def test_an_index_must_agree_with_its_shards(folder):
    shard(folder)
    index = json.loads((folder / INDEX).read_text())
    (folder / "part-1.safetensors").rename(folder / "elsewhere")
    refused(folder, "part-1.safetensors", "missing")
    (folder / "elsewhere").rename(folder / "part-1.safetensors")

    for content, words in (
        (index["weight_map"] | {"model.norm.weight": "part-0.safetensors"}, ["model.norm.weight", "part-0"]),
        ({"a": "../part-0.safetensors"}, ["'../part-0.safetensors'", "own folder"]),
        ({}, ["weight_map"]),
    ):
        (folder / INDEX).write_text(json.dumps({"weight_map": content}))
        refused(folder, *words)
