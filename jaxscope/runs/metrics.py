"""Metrics of a run: one JSON object a line, per host call and seed.

What did not happen is absent, never zero: a call in which no episode ended has no `return`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxscope.files import write_text

_SUMS = ("episodes", "return_sum", "length_sum")


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


def summarise(
    metrics: dict[str, np.ndarray], iteration: int, frames: int, partners: Sequence[str]
) -> list[dict[str, Any]]:
    """One line per seed from the metrics `[n, S, ...]` of the n iterations of a host call.

    Losses and the like are means over the iterations, returns are means over the episodes that ended, and what is kept
    per partner is the state after the last iteration.
    """
    lines = []
    for seed in range(metrics["episodes"].shape[1]):
        line: dict[str, Any] = {"iteration": iteration, "frames": frames, "seed": seed}
        episodes = int(metrics["episodes"][:, seed].sum())
        line["episodes"] = episodes
        if episodes:
            line["return"] = float(metrics["return_sum"][:, seed].sum(dtype=np.float64) / episodes)
            line["length"] = float(metrics["length_sum"][:, seed].sum(dtype=np.float64) / episodes)
        for name, values in sorted(metrics.items()):
            if name in _SUMS:
                continue
            if values.ndim == 2:
                line[name] = float(values[:, seed].mean(dtype=np.float64))
            else:
                last = values[-1, seed]
                line[name] = {who: float(x) for who, x in zip(partners, last, strict=True) if not np.isnan(x)}
        lines.append(line)
    return lines
