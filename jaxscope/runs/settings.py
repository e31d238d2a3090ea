"""What a run was asked to do: a frozen dataclass, kept as `config.json` in the run's folder."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import cattrs

from jaxscope import registry
from jaxscope.files import write_text
from jaxscope.method import Method
from jaxscope.types import Environment

FORMAT = 3
METHODS = "jaxscope.zsc"
_PACKAGES = ("jaxscope", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


@dataclass(frozen=True)
class RunSettings:
    """One method in one environment, for several seeds at once."""

    method: str
    """Name of a file in `jaxscope/zsc`, with hyphens."""
    env: str
    """Name of an environment."""
    config: Any
    """The method's own `Config`."""
    seeds: int = 3
    """Independent training runs, trained side by side in one program."""
    seed: int = 0
    """Root of all randomness; run s of the folder uses the s-th key derived from it."""
    partners: tuple[str, ...] = ()
    """Partners as asked for: names of scripted partners, `training`, or folders of earlier runs."""
    iterations_per_call: int = 10
    """Iterations that run on the device before the host logs."""
    checkpoint_seconds: float = 60.0
    """Seconds between checkpoints; one more is written at the end."""
    snapshots: int = 10
    """Points along the run at which a copy of the policies is kept, beside one before training; 0 for none."""
    devices: int = 1
    """Devices to shard over: seeds where they divide evenly, else environments."""

    def __post_init__(self) -> None:
        for name in ("seeds", "iterations_per_call", "devices"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least 1")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed = {self.seed}: must lie in [0, 2**32)")
        if self.snapshots < 0:
            raise ValueError(f"snapshots = {self.snapshots}: must not be negative")
        if not self.checkpoint_seconds >= 0:
            raise ValueError(f"checkpoint_seconds = {self.checkpoint_seconds}: must not be negative")

    @property
    def module(self) -> Method:
        """The method's module."""
        return method(self.method)

    def make_env(self) -> Environment:
        from jaxscope.make import make

        return make(self.env)


def method(name: str) -> Method:
    """The zero-shot-coordination method called `name`.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    known = method_names()
    if name.replace("_", "-") not in known:
        raise ValueError(registry.unknown("there is no method", name, known))
    return cast(Method, registry.load(METHODS, name))


def method_names() -> list[str]:
    """Names of all methods, with hyphens."""
    return [name.replace("_", "-") for name in registry.names(METHODS)]


def save(settings: RunSettings, folder: Path) -> None:
    """Write `config.json`, defaults and versions included."""
    record = {"format": FORMAT, **dataclasses.asdict(settings), "versions": versions()}
    write_text(folder / "config.json", json.dumps(record, indent=2) + "\n")


def load(folder: Path) -> RunSettings:
    """The settings of the run in `folder`.

    Raises:
        ValueError: `folder` holds no run, or one that this version cannot read.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} is not a run: it has no config.json")
    try:
        record = json.loads(path.read_text())
        if record.pop("format") != FORMAT:
            raise ValueError(f"it is of another format than {FORMAT}, that is of another version of jaxscope")
        record.pop("versions")
        config = _converter.structure(record.pop("config"), method(record["method"]).Config)
        return _converter.structure({**record, "config": config}, RunSettings)
    except (ValueError, KeyError, TypeError, AttributeError, cattrs.BaseValidationError) as error:
        raise ValueError(f"{path} cannot be read: {_reason(error)}") from error


def changed_versions(folder: Path) -> dict[str, tuple[str | None, str]]:
    """Packages that are not those the run in `folder` was made with: what they were and are."""
    was = json.loads((folder / "config.json").read_text()).get("versions", {})
    return {name: (was.get(name), now) for name, now in versions().items() if was.get(name) != now}


def versions() -> dict[str, str]:
    """What the run was made with."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in _PACKAGES}


def _reason(error: Exception) -> str:
    if isinstance(error, cattrs.BaseValidationError):
        return "; ".join(cattrs.transform_error(error, format_exception=_said))
    return str(error)


def _said(error: BaseException, kind: type | None) -> str:
    """Our own complaints in their own words."""
    return str(error) if isinstance(error, ValueError) else cattrs.v.format_exception(error, kind)


_converter = cattrs.Converter(forbid_extra_keys=True)
_converter.register_structure_hook(Any, lambda value, _: value)
