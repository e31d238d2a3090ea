"""Measure speed side by side with peers: jaxscope bench envs|train|population|llm|all.

Runs from a checkout, in an environment that also has the peers (`make bench` makes one). Every figure is a median over
repeats, and contenders take turns within one process.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from jaxscope.files import write_text

WHAT = ("envs", "train", "population", "llm")
#: Those that measure several families of environments.
OF_FAMILIES = ("envs", "train")


@dataclass(frozen=True)
class Options:
    what: tyro.conf.Positional[Literal["envs", "train", "population", "llm", "all"]] = "all"
    """What to measure."""
    env: str | None = None
    """Only environments of this family, for `envs` and `train`."""
    repeats: int = 5
    """Timed calls of each contender, at least 3."""
    json: Path | None = None
    """Also write all figures to this file."""
    plan: bool = False
    """`llm`: measure nothing; compute what a model needs on each device, for every way to divide it."""
    model: str | None = None
    """`--plan`: only this model, for example Qwen3-4B-Instruct-2507."""
    devices: int = 8
    """`--plan`: how many there are."""
    rows: int = 64
    """`--plan`: conversations at a time."""
    context: int = 4096
    """`--plan`: tokens of each."""


def run(options: Options) -> None:
    if options.repeats < 3:
        raise ValueError(f"repeats = {options.repeats}: a median needs at least 3")
    if options.env is not None and options.what not in OF_FAMILIES:
        raise ValueError(f"--env goes with {' and '.join(OF_FAMILIES)} only")
    if options.plan and options.what != "llm":
        raise ValueError("--plan goes with llm only")
    root = Path(__file__).parents[2]
    if not (root / "benchmarks" / "timing.py").is_file():
        raise ValueError("benchmarks are not part of the installed package: run this from a checkout of the project")
    sys.path.insert(0, str(root))
    timing = importlib.import_module("benchmarks.timing")
    results = _planned(options) if options.plan else _measured(options)
    if options.json:
        record = {"machine": timing.machine_record(), "results": results}
        write_text(options.json, json.dumps(record, indent=2) + "\n")


def _planned(options: Options) -> list[dict[str, Any]]:
    plan = importlib.import_module("benchmarks.llm_plan")
    return plan.run(options.model, devices=options.devices, rows=options.rows, context=options.context)


def _measured(options: Options) -> list[dict[str, Any]]:
    results = []
    for what in WHAT if options.what == "all" else (options.what,):
        of_one = {"env": options.env} if what in OF_FAMILIES else {}
        results += importlib.import_module(f"benchmarks.{what}").run(options.repeats, **of_one)
    return results
