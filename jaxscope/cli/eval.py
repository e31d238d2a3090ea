"""Evaluate runs with partners they never met: jaxscope eval RUN [RUN ...].

Every seed of each run's newest checkpoint plays with every partner from every seat. Writes eval.json into the run
folders and prints the tables. Intervals are over training runs (seeds), never over episodes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import jax
import tyro

from jaxscope.cli._console import console
from jaxscope.files import write_text
from jaxscope.runs import panels
from jaxscope.runs import settings as run_settings
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.runs.recording import record_run
from jaxscope.runs.tables import result_tables
from jaxscope.types import Renders


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders."""
    partners: tuple[str, ...] = ()
    """Partners to judge with in place of the held-out and training ones: scripts, a role, or folders of runs."""
    episodes: int = 50
    """Episodes per seed, partner and seat."""
    seed: int = 0
    """Root of the games' randomness; the same games for every run."""
    record: bool = False
    """Also record an episode with each partner as an animated picture, into the run's recordings/."""
    json: Path | None = None
    """Also write all results to this file."""


def run(options: Options) -> None:
    if not options.runs:
        raise ValueError("name at least one run folder")
    if options.record:
        _require_recordable(options)
    records = evaluate_runs(options.runs, options.episodes, options.seed, options.partners)
    for table in result_tables(records):
        console().print(table)
    for folder, record in zip(options.runs, records, strict=True):
        for name, group in record["groups"].items():
            if group["met_in_training"]:
                print(f"{folder} met these {name} partners in training: {', '.join(group['met_in_training'])}")
    if options.json:
        write_text(options.json, json.dumps(records, indent=2) + "\n")
    if options.record:
        for folder in options.runs:
            for path in record_run(folder, _to_record(options), jax.random.key(options.seed)):
                print(path)


def _to_record(options: Options) -> tuple[str, ...]:
    return options.partners or ("held-out",)


def _require_recordable(options: Options) -> None:
    """Fail before the evaluation, not after it."""
    for env in (run_settings.load(folder).make_env() for folder in options.runs):
        if not isinstance(env, Renders):
            raise ValueError(f"{env.name} cannot be recorded: it has no method render(state)")
        panels.resolve(_to_record(options), env)
