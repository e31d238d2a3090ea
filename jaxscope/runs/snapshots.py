"""Snapshots: what the policies of a run were at points along the way, kept for good.

Curves over training are made from them, and so are partners of unequal skill. A snapshot is taken at the end of the
host call in which its point is reached, so that snapshots neither add calls nor depend on when a run was interrupted.
"""

from __future__ import annotations

from pathlib import Path

from jaxscope.runs.checkpoints import Checkpoints
from jaxscope.runs.settings import RunSettings

FOLDER = "snapshots"


def store(folder: Path, writable: bool = True) -> Checkpoints:
    """The snapshots of the run in `folder`."""
    return Checkpoints(folder / FOLDER, keep=None, writable=writable)


def due(settings: RunSettings, iteration: int) -> bool:
    """Whether a snapshot belongs to the state after `iteration` iterations, the last of a host call."""
    if not settings.snapshots:
        return False
    total = settings.config.iterations
    passed = lambda at: at * settings.snapshots // total  # noqa: E731  # points reached
    before = iteration - 1 - (iteration - 1) % settings.iterations_per_call  # where the host call began
    return iteration == 0 or passed(iteration) > passed(before)
