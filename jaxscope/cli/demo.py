"""Train, judge and report in minutes: self-play beside PopPlay in Level-Based Foraging.

Trains both methods for several seeds on two CPU cores, evaluates them with four partners that neither ever met, and
writes the table, an HTML report and recordings into one folder. A demo that was stopped goes on when started again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from jaxscope.agents.scripted import partner_names
from jaxscope.cli._console import console
from jaxscope.cli._progress import TrainingProgress
from jaxscope.evaluation.heldout import require_halves
from jaxscope.make import make
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs import settings as run_settings
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.runs.recording import record_run
from jaxscope.runs.report import write_report
from jaxscope.runs.tables import result_tables
from jaxscope.zsc import popplay, self_play


@dataclass(frozen=True)
class Options:
    out: Path = Path("demo")
    """Folder for the two runs, the report and the recordings."""
    env: str = "lbf/2s-8x8-2p-3f"
    """Environment; it needs scripted partners."""
    seeds: int = 4
    """Training runs of each method."""
    frames: int = 600_000
    """Environment steps of each training run."""
    episodes: int = 50
    """Episodes per seed, partner and seat in the evaluation."""


def run(options: Options) -> None:
    began = time.monotonic()
    _require_partners(options)
    runs = _runs(options)
    folders = {name: options.out / name for name in runs}
    for name, settings in runs.items():
        _require_own(folders[name], settings)
    for name, settings in runs.items():
        with TrainingProgress(settings, folders[name]) as progress:
            train(settings, folders[name], progress, resume=folders[name].exists())
    print("evaluating with partners that were never met", flush=True)
    records = evaluate_runs(list(folders.values()), options.episodes)
    for folder in folders.values():
        record_run(folder, ["held-out"], jax.random.key(1))
    write_report(list(folders.values()), options.out / "report.html")
    for table in result_tables(records):
        console().print(table)
    print(f"report: {options.out / 'report.html'}   ({time.monotonic() - began:.0f} s)")


def _require_partners(options: Options) -> None:
    """Fail before training, not after it."""
    for role in ("training", "held-out"):
        if not partner_names(make(options.env).name, role):
            raise ValueError(f"{options.env} has no {role} partners, which the demo needs")
    require_halves(options.episodes)


def _require_own(folder: Path, settings: RunSettings) -> None:
    """A folder that exists already is from a demo that was stopped, which goes on."""
    if folder.exists() and replace(run_settings.load(folder), devices=settings.devices) != settings:
        raise ValueError(f"{folder} holds another run; choose another folder with --out, or remove it")


def _runs(options: Options) -> dict[str, RunSettings]:
    ppo = PPOConfig(frames=options.frames)
    devices = _devices(options.seeds)
    common: dict[str, Any] = {"env": options.env, "seeds": options.seeds, "devices": devices, "snapshots": 5}
    return {
        "self-play": RunSettings("self-play", config=self_play.Config(ppo), **common),
        "popplay": RunSettings("popplay", config=popplay.Config(ppo), partners=("training",), **common),
    }


def _devices(seeds: int) -> int:
    """The most devices over which seeds divide evenly: those need not talk to each other."""
    return max(n for n in range(1, jax.device_count() + 1) if seeds % n == 0)
