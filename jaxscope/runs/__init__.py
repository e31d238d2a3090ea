"""Training runs on disk: what was asked for, checkpoints, metrics, evaluation, report."""

from jaxscope.runs.loop import train
from jaxscope.runs.settings import RunSettings

__all__ = ["RunSettings", "train"]
