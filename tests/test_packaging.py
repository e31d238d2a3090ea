"""The checkout and the wheel hold the same package, and the wheel works on its own."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = {"jaxscope": ROOT / "jaxscope", "jaxscope.envs": ROOT / "envs", "jaxscope.agents": ROOT / "agents"}


def command(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


def sources() -> dict[str, Path]:
    """Every Python file of the package, by its place in the wheel; nothing is followed through a link."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            if path.resolve() == path:
                found[f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"] = path
    return found


def test_every_package_is_listed():
    packages = {name.rpartition("/")[0].replace("/", ".") for name in sources() if name.endswith("__init__.py")}
    folders = {name.rpartition("/")[0].replace("/", ".") for name in sources()}
    assert packages == folders  # no folder of code without an __init__.py
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(packages)
    assert PROJECT["tool"]["setuptools"]["package-dir"].keys() == FOLDERS.keys()


@pytest.mark.parametrize("name", ["envs", "agents"])
def test_links_lead_to_the_top(name):
    link = ROOT / "jaxscope" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"


@pytest.mark.parametrize("name", ["envs", "agents"])
def test_second_copies_are_refused(name):
    done = command(sys.executable, "-c", f"import {name}", cwd=ROOT)
    assert done.returncode == 1
    assert f"ImportError: import jaxscope.{name}, not {name}" in done.stderr


def test_version_is_told_once():
    import jaxscope

    assert PROJECT["project"]["version"] == jaxscope.__version__


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this checkout, built from a copy so that no build folder is left behind."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("jaxscope", "envs", "agents"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    (needed,) = (Requirement(text) for text in PROJECT["build-system"]["requires"])
    here = _distribution(needed.name)
    # With the build tool at hand nothing is downloaded.
    offline = ["--no-build-isolation"] if here and Version(here.version) in needed.specifier else []
    built = command(sys.executable, "-m", "pip", "wheel", "--no-deps", *offline, "-w", out, source)
    assert built.returncode == 0, built.stderr
    (path,) = out.iterdir()
    return path


def test_wheel_holds_all_sources(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}
        assert "jaxscope/py.typed" in archive.namelist()
    assert held == {name: path.read_bytes() for name, path in sources().items()}


def test_wheel_works_with_what_it_declares_and_nothing_else(wheel, tmp_path):
    """In a fresh environment with the declared dependencies, theirs, and no other package."""
    venv, empty = tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    assert command(sys.executable, "-m", "venv", "--without-pip", venv).returncode == 0
    python = venv / "bin" / "python"
    install = ("install", "--no-deps", "--no-index", wheel)
    installed = command(sys.executable, "-m", "pip", "--python", python, *install)
    assert installed.returncode == 0, installed.stderr
    (site,) = (venv / "lib").glob("python*/site-packages")
    for distribution in declared(PROJECT["project"]["dependencies"]).values():
        link(distribution, site)

    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XLA_FLAGS")}
    quick = clean | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    code = "import jaxscope, jaxscope.envs, jaxscope.agents as a; print(jaxscope.__file__, jaxscope.envs.__file__, a)"
    where = command(python, "-c", code, cwd=empty, env=quick)
    assert where.returncode == 0, where.stderr
    assert where.stdout.count(str(site)) == 3
    assert command(python, "-c", "import pytest", cwd=empty, env=quick).returncode == 1

    listed = command(venv / "bin" / "jaxscope", "list", cwd=empty, env=quick)
    assert listed.returncode == 0, listed.stderr
    assert "closest-food" in listed.stdout
    sizes = "--frames 64 --num-envs 8 --num-steps 4 --minibatches 2 --hidden 8 --seeds 1"
    words = ["train", "self-play", "--env", "matching/4", "--out", "run", *sizes.split()]
    trained = command(venv / "bin" / "jaxscope", *words, cwd=empty, env=quick)
    assert trained.returncode == 0, trained.stderr
    assert (empty / "run" / "checkpoints" / "2").is_dir()
    reported = command(venv / "bin" / "jaxscope", "report", "run", cwd=empty, env=quick)
    assert reported.returncode == 0, reported.stderr


def _distribution(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def declared(requirements: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """The installed distributions that `requirements` ask for, and those that these ask for, and so on."""
    found, asked = {}, [(Requirement(text), "") for text in requirements]
    while asked:
        requirement, extra = asked.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        distribution = importlib.metadata.distribution(requirement.name)
        assert Version(distribution.version) in requirement.specifier
        for wanted in (extra for extra in ("", *requirement.extras) if (name, extra) not in found):
            found[name, wanted] = distribution
            asked += [(Requirement(text), wanted) for text in distribution.requires or ()]
    return {name: distribution for (name, _), distribution in found.items()}


def link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Make an installed distribution importable from another folder."""
    for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
        target = Path(str(distribution.locate_file(top)))
        if not (site / top).exists():
            (site / top).symlink_to(target)
