"""Play everybody with everybody: jaxscope crossplay RUN [RUN ...].

All seeds of the runs, and scripted partners if named, meet in all ordered pairs: the row's member sits in seat 0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.table import Table

from jaxscope.cli._console import console
from jaxscope.evaluation import CrossPlay
from jaxscope.files import write_text
from jaxscope.runs.evaluate import crossplay_runs


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders, all of one environment."""
    partners: tuple[str, ...] = ()
    """Scripted partners to add: names, or a role such as held-out."""
    episodes: int = 50
    """Episodes per ordered pair."""
    seed: int = 0
    """Root of the games' randomness."""
    json: Path | None = None
    """Also write the matrix to this file."""


def run(options: Options) -> None:
    if not options.runs:
        raise ValueError("name at least one run folder")
    env, result = crossplay_runs(options.runs, options.episodes, options.seed, options.partners)
    console().print(_table(result, f"Mean team return in {env.name}, {options.episodes} episodes per pair"))
    print(f"with themselves {result.self_play():.3f}, with others {result.cross_play():.3f}")
    if options.json:
        record = {
            "env": env.name,
            "episodes": options.episodes,
            "names": list(result.names),
            "matrix": result.matrix().tolist(),
        }
        write_text(options.json, json.dumps(record, indent=2) + "\n")


def _table(result: CrossPlay, title: str) -> Table:
    table = Table(title=title)
    table.add_column("seat 0 \\ others", overflow="fold")
    for index in range(len(result.names)):
        table.add_column(str(index), justify="right", no_wrap=True)
    for index, (name, row) in enumerate(zip(result.names, result.matrix(), strict=True)):
        table.add_row(f"{index} {name}", *(f"{value:.2f}" for value in row))
    return table
