"""Metrics of a run: one JSON object a line, per host call and seed.

What did not happen is absent, never zero: a call in which no episode ended has no `return`. Where the environment pays
shaping, `unshaped_return` is the return without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxscope.files import write_text
from jaxscope.metrics import EpisodeTotals, Metrics


class MetricsLog:
    """Appends to `metrics.jsonl`; lines are on disk when `write` returns."""

    def __init__(self, path: Path, resume_at: int | None = None):
        """Open for appending, after dropping what was logged beyond iteration `resume_at` (0 or None: everything)."""
        kept = [line for line in read(path) if line["iteration"] <= (resume_at or 0)] if path.exists() else []
        write_text(path, "".join(json.dumps(line) + "\n" for line in kept))
        self._file = path.open("a")

    def write(self, lines: Sequence[dict[str, Any]]) -> None:
        self._file.write("".join(json.dumps(line) + "\n" for line in lines))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> list[dict[str, Any]]:
    """All lines; a last line that a kill cut short is left out.

    Raises:
        ValueError: any other line is not a JSON object with an iteration.
    """
    lines = path.read_text().split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: not a JSON object") from error
        if not isinstance(record, dict) or not isinstance(record.get("iteration"), int):
            raise ValueError(f"{path}, line {number}: not an object with an iteration")
        records.append(record)
    return records


def summarise(metrics: Metrics, iteration: int, frames: int, partners: Sequence[str]) -> list[dict[str, Any]]:
    """One line per seed from the metrics, leaves `[n, S, ...]`, of the n iterations of a host call.

    Losses and the like are means over the iterations, returns are means over the episodes that ended, and what is kept
    per partner is the state after the last iteration.
    """
    lines = []
    for seed in range(metrics.episodes.count.shape[1]):
        of_seed = jax.tree.map(lambda values: values[:, seed], metrics)  # noqa: B023  # used at once
        line = {"iteration": iteration, "frames": frames, "seed": seed} | _episodes(of_seed.episodes)
        if taken := line.keys() & (of_seed.means.keys() | of_seed.partners.keys()):
            raise ValueError(f"metrics may not be called {', '.join(sorted(taken))}: every line has these anyway")
        line |= {name: float(values.mean(dtype=np.float64)) for name, values in sorted(of_seed.means.items())}
        for name, values in sorted(of_seed.partners.items()):
            line[name] = {who: float(x) for who, x in zip(partners, values[-1], strict=True) if not np.isnan(x)}
        lines.append(line)
    return lines


def _episodes(totals: EpisodeTotals) -> dict[str, Any]:
    count = int(totals.count.sum())
    if not count:
        return {"episodes": 0}
    mean = lambda sums: float(sums.sum(dtype=np.float64) / count)  # noqa: E731
    line = {"episodes": count, "return": mean(totals.team_return), "length": mean(totals.length)}
    if totals.shaping is not None:
        line["unshaped_return"] = mean(totals.team_return - totals.shaping)
    return line
