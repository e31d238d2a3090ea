"""Showing how training goes: a live bar on a terminal, a line now and then elsewhere, TensorBoard if wanted."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from jaxscope.runs.loop import Progress
from jaxscope.runs.settings import RunSettings

_SECONDS_BETWEEN_LINES = 10.0


class TrainingProgress:
    """Called with each `Progress`; a context manager."""

    def __init__(self, settings: RunSettings, folder: Path, tensorboard: bool = False):
        self._title = f"{settings.method}, {settings.seeds} seeds"
        self._seeds = settings.seeds
        self._open_writer = _tensorboard(folder) if tensorboard else None
        self._writer = None  # made when there is something to write: settings may turn out not to fit
        self._bar = _bar() if sys.stderr.isatty() else None
        self._task = None
        self._begun: tuple[float, int] | None = None  # time and frames after the first call, which compiles
        self._last_line = time.monotonic()

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._writer is not None:
            self._writer.close()

    def __call__(self, progress: Progress) -> None:
        if not progress.lines:
            self._start()
            return
        rate = self._frames_per_second(progress)
        returns = [line["return"] for line in progress.lines if "return" in line]
        score = f"return {np.mean(returns):.3f}" if returns else "no episode ended yet"
        if self._bar is not None:
            assert self._task is not None
            self._bar.update(
                self._task,
                description=self._title,
                total=progress.iterations,
                completed=progress.iteration,
                rate=f"{rate:,.0f} frames/s" if rate else "",
                score=score,
            )
        else:
            self._line(progress, rate, score)
        if self._open_writer is not None:
            self._writer = self._writer or self._open_writer(progress.frames)
            _log(self._writer, progress)

    def _start(self) -> None:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(f"{self._title}: compiling", total=None, rate="", score="")
        else:
            print(f"{self._title}: compiling", file=sys.stderr, flush=True)

    def _frames_per_second(self, progress: Progress) -> float | None:
        """Frames of all seeds per second since the first call."""
        now = time.monotonic()
        if self._begun is None:
            self._begun = (now, progress.frames)
            return None
        began, frames = self._begun
        return (progress.frames - frames) * self._seeds / max(now - began, 1e-9)

    def _line(self, progress: Progress, rate: float | None, score: str) -> None:
        now = time.monotonic()
        if progress.iteration < progress.iterations and now - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        left = ""
        if rate:
            frames_left = progress.frames * (progress.iterations / progress.iteration - 1) * self._seeds
            left = f", {rate:,.0f} frames/s, {frames_left / rate:.0f} s left"
        print(
            f"{self._title}: {progress.frames:,} frames each ({progress.iteration / progress.iterations:.0%}), "
            f"{score}{left}",
            file=sys.stderr,
            flush=True,
        )


def _bar():
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[score]}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _tensorboard(folder: Path):
    """A function that opens the files; what an earlier process wrote from the given frame on is superseded."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ImportError('TensorBoard files need tensorboardX: pip install "jaxscope[tensorboard]"') from error
    return lambda frames: SummaryWriter(str(folder / "tensorboard"), purge_step=frames)


def _log(writer, progress: Progress) -> None:
    for line in progress.lines:
        for name, value in line.items():
            values = value if isinstance(value, dict) else {"": value}
            for who, number in values.items():
                if name not in ("iteration", "frames", "seed"):
                    tag = f"{name}/{who}" if who else name
                    writer.add_scalar(f"{tag}/seed_{line['seed']}", number, progress.frames)
