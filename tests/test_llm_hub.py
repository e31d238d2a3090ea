"""What a model's name leads to. The hub is played by a function, or by its own package reading a made cache."""

import sys

import huggingface_hub
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from jaxscope.agents.llm import hub, packaged
from jaxscope.agents.llm.safetensors_folder import SINGLE, SafetensorsFolder
from tests import refusals


def make_model(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    save_file({"model.norm.weight": torch.ones(3)}, folder / SINGLE)
    return folder


@pytest.fixture
def asked(monkeypatch):
    """The hub's answers, a path or an error for each call, and what it was asked."""
    calls, answers = [], []

    def snapshot_download(repo_id, **options):
        calls.append({"repo_id": repo_id, **options})
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return calls, answers


def test_what_is_at_hand_comes_first(tmp_path, monkeypatch, asked):
    monkeypatch.chdir(tmp_path)
    make_model(tmp_path / "org" / "name")
    (tmp_path / "a.gguf").write_bytes(b"")
    assert hub.resolve("org/name") == hub.resolve(tmp_path / "org/name").relative_to(tmp_path)
    assert hub.resolve("a.gguf").name == "a.gguf"
    source = hub.source(hub.resolve("org/name"))
    assert isinstance(source, SafetensorsFolder)
    assert np.array_equal(source.read("model.norm.weight"), np.ones(3))
    assert asked[0] == []


def test_packaged_models_are_known_by_name(monkeypatch, tmp_path):
    monkeypatch.setattr(packaged, "path", lambda name: tmp_path / f"{name}.gguf")
    assert hub.resolve("smollm2-135m") == tmp_path / "smollm2-135m.gguf"


def test_the_cache_of_the_hub_is_taken_without_asking_it(tmp_path, asked):
    calls, answers = asked
    answers.append(make_model(tmp_path / "snapshot"))
    assert hub.resolve("org/name@v1") == tmp_path / "snapshot"
    (call,) = calls
    assert (call["repo_id"], call["revision"], call["local_files_only"]) == ("org/name", "v1", True)


@pytest.mark.parametrize("cached", ["nothing", "a part"])
def test_the_hub_is_asked_for_what_the_cache_lacks(tmp_path, asked, cached):
    calls, answers = asked
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "tokenizer.json").write_text("{}")
    missing = huggingface_hub.errors.LocalEntryNotFoundError("not there")
    answers += [missing if cached == "nothing" else tmp_path / "part", make_model(tmp_path / "whole")]
    assert hub.resolve("org/name") == tmp_path / "whole"
    first, second = calls
    assert first.pop("local_files_only")
    assert first == second
    assert second["revision"] is None


def test_the_files_that_are_wanted(tmp_path, asked):
    calls, answers = asked
    answers.append(make_model(tmp_path / "a"))
    hub.resolve("org/name")
    wanted = ["model-00001-of-00002.safetensors", "model.safetensors.index.json", "config.json", "tokenizer.json"]
    wanted += [
        "tokenizer_config.json",
        "generation_config.json",
        "chat_template.jinja",
        "tokenizer.model",
        "merges.txt",
    ]
    others = [
        "pytorch_model.bin",
        "onnx/config.json",
        "original/model.safetensors",
        "consolidated.safetensors",
        "README.md",
    ]
    patterns = {key: calls[0][key] for key in ("allow_patterns", "ignore_patterns")}
    assert list(huggingface_hub.utils.filter_repo_objects(wanted + others, **patterns)) == wanted


def refused(name: str, *words: str) -> None:
    refusals.refused(hub.resolve, name, saying=words)


def test_what_the_hub_says_is_passed_on(asked):
    _, answers = asked
    answers += [OSError("no cache"), OSError("Repository Not Found\nsecond line")]
    refused("org/name", "'org/name'", "Repository Not Found")
    answers += [OSError("no cache"), RuntimeError()]
    refused("org/name", "RuntimeError")


def test_without_the_extra_the_message_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    refused("org/name", "'org/name'", "pip install 'jaxscope[hub]'")


@pytest.mark.parametrize(
    "name", ["smollm", "./org/name", "/org/name", "a/b/c", "org/a.gguf", "b.gguf", "", "org/na me"]
)
def test_names_that_lead_nowhere(tmp_path, monkeypatch, asked, name):
    monkeypatch.chdir(tmp_path)
    refused(name, f"{name!r}", "smollm2-135m", "organisation/name", ".gguf")
    assert asked[0] == []


def test_the_hubs_own_package_finds_a_cached_model(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--org--name"
    snapshot = make_model(repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    assert hub.resolve("org/name") == snapshot
