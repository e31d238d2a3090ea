"""Train, judge and report in minutes: self-play beside PopPlay in Level-Based Foraging.

Trains both methods for several seeds on two CPU cores, evaluates them with four partners that neither ever met, and
writes the table, an HTML report and recordings into one folder.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import jax

from jaxscope.agents.scripted import partner_names
from jaxscope.cli._console import console
from jaxscope.cli._progress import TrainingProgress
from jaxscope.make import make
from jaxscope.panel import Panel, join
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, panels, train
from jaxscope.runs import settings as run_settings
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.runs.recording import record_gif
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
    folders = {name: options.out / name for name in ("self-play", "popplay")}
    for folder in folders.values():
        if folder.exists():
            raise ValueError(f"{folder} exists already; choose another folder with --out, or remove it")
    for name, settings in _runs(options).items():
        with TrainingProgress(settings, folders[name]) as progress:
            train(settings, folders[name], progress)
    print("evaluating with partners that were never met", flush=True)
    records = evaluate_runs(list(folders.values()), options.episodes)
    for folder in folders.values():
        _record(folder)
    write_report(list(folders.values()), options.out / "report.html")
    for table in result_tables(records):
        console().print(table)
    print(f"report: {options.out / 'report.html'}   ({time.monotonic() - began:.0f} s)")


def _require_partners(options: Options) -> None:
    """Fail before training, not after it."""
    for role in ("training", "held-out"):
        if not partner_names(make(options.env).name, role):
            raise ValueError(f"{options.env} has no {role} partners, which the demo needs")
    if options.episodes < 2:
        raise ValueError(f"episodes = {options.episodes}: must be at least 2")


def _runs(options: Options) -> dict[str, RunSettings]:
    ppo = PPOConfig(frames=options.frames)
    common = {"env": options.env, "seeds": options.seeds, "devices": _devices(options.seeds)}
    return {
        "self-play": RunSettings("self-play", config=self_play.Config(ppo), **common),
        "popplay": RunSettings("popplay", config=popplay.Config(ppo), partners=("training",), **common),
    }


def _devices(seeds: int) -> int:
    """The most devices over which seeds divide evenly: those need not talk to each other."""
    return max(n for n in range(1, jax.device_count() + 1) if seeds % n == 0)


def _record(folder: Path) -> None:
    """One episode of the run's first seed with each held-out partner."""
    env = run_settings.load(folder).make_env()
    learned = panels.of_run(folder, env)
    partners = partner_names(env.name, "held-out")
    both = join(learned, Panel.scripted(env, partners))
    (folder / "recordings").mkdir(exist_ok=True)
    for partner in partners:
        team = [0] + [both.names.index(partner)] * (env.num_agents - 1)
        record_gif(env, both, team, jax.random.key(1), folder / "recordings" / f"with-{partner}.gif")
