"""Train a method: jaxscope train METHOD --env NAME.

Trains several seeds side by side and writes a run folder: config.json, metrics.jsonl and checkpoints. Stop it at any
time; `--resume RUN` goes on where the newest checkpoint was taken, bit for bit as if it had never stopped.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from jaxscope.cli._progress import TrainingProgress
from jaxscope.files import file_name
from jaxscope.runs import RunSettings, train
from jaxscope.runs import settings as run_settings


@dataclass(frozen=True)
class Common:
    """Options of every method."""

    env: str = "lbf/2s-8x8-2p-3f"
    """Environment; `jaxscope list envs` shows names."""
    out: Path | None = None
    """Run folder to make; by default runs/METHOD-ENV-SEED."""
    seeds: int = 3
    """Independent training runs, trained side by side."""
    seed: int = 0
    """Root of all randomness."""
    iterations_per_call: int = 10
    """Iterations between lines of metrics."""
    checkpoint_seconds: float = 60.0
    """Seconds between checkpoints."""
    snapshots: int = 10
    """Points at which to keep a copy of the policies, for curves over training, beside one before it; 0 for none."""
    devices: int = 1
    """Devices to shard over: seeds where they divide evenly, else environments."""
    tensorboard: bool = False
    """Also write TensorBoard files into the run folder (needs the extra `tensorboard`)."""


@dataclass(frozen=True)
class WithPartners(Common):
    """Options of methods that meet partners."""

    partners: tuple[str, ...] = ("training",)
    """Scripted partners, `training` for all scripts meant for training, or folders of runs (with a / in them)."""


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped."""

    resume: Annotated[Path, tyro.conf.arg(help="Run folder to go on with; its own settings apply.")]
    method: tyro.conf.Suppress[str] = ""
    devices: int | None = None
    """Devices to go on with; by default as many as before."""
    tensorboard: bool = False
    """Also write TensorBoard files into the run folder (needs the extra `tensorboard`)."""


def Options(words: list[str], prog: str):  # stands where other commands have their dataclass
    """The options of the method named by the first word."""
    methods = run_settings.method_names()
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: {prog} METHOD --env NAME [OPTIONS]\n       {prog} METHOD --resume RUN\n\n{__doc__}\nMethods:")
        for name in methods:
            print(f"  {name:<12} {(run_settings.method(name).__doc__ or '').strip().splitlines()[0]}")
        print(f"\n`{prog} METHOD --help` shows the options of a method.")
        return None, words, prog
    module, name, rest = run_settings.method(words[0]), words[0].replace("_", "-"), words[1:]
    fields: list[Any] = [("method", tyro.conf.Suppress[str], name)]
    if any(word == "--resume" or word.startswith("--resume=") for word in rest):
        base = Resume
    else:
        base = WithPartners if module.MEETS_PARTNERS else Common
        fields.append(("config", module.Config, module.Config()))
    return make_dataclass("Options", fields, bases=(base,), frozen=True), rest, f"{prog} {name}"


def run(options) -> None:
    if isinstance(options, Resume):
        settings, folder, resume = run_settings.load(options.resume), options.resume, True
        if settings.method != options.method:
            raise ValueError(f"{folder} is a run of {settings.method}, not of {options.method}")
        if options.devices is not None:
            settings = replace(settings, devices=options.devices)
        for package, (was, now) in run_settings.changed_versions(folder).items():
            print(f"{package} was {was}, is {now}: the outcome may differ from that of one whole run", file=sys.stderr)
    else:
        settings, resume = settings_of(options), False
        folder = options.out or _default_folder(settings)
    with TrainingProgress(settings, folder, options.tensorboard) as progress:
        train(settings, folder, progress, resume)
    print(f"{settings.method} in {settings.env}: {folder}")


def settings_of(options) -> RunSettings:
    """The run that the options ask for."""
    return RunSettings(
        method=options.method,
        env=options.env,
        config=options.config,
        seeds=options.seeds,
        seed=options.seed,
        partners=getattr(options, "partners", ()),
        iterations_per_call=options.iterations_per_call,
        checkpoint_seconds=options.checkpoint_seconds,
        snapshots=options.snapshots,
        devices=options.devices,
    )


def _default_folder(settings: RunSettings) -> Path:
    return Path("runs") / f"{settings.method}-{file_name(settings.env)}-{settings.seed}"
