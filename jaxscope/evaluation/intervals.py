"""Intervals whose unit is a training run.

Episodes of one run are not independent evidence about a method; runs are. With few runs the percentile bootstrap covers
far less than it says (84 % for a nominal 95 % at five runs), so Student's t is the default.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


class Interval(NamedTuple):
    """A mean over runs; `low` and `high` are None for a single run, which bounds nothing."""

    mean: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return rounded(self.mean)
        return f"{rounded(self.mean)} ± {rounded((self.high - self.low) / 2, like=self.mean)}"


def rounded(value: float, like: float | None = None) -> str:
    """A figure for a table: three decimals, fewer where `like` (or the figure itself) is 10 or more."""
    size = abs(value if like is None else like)
    decimals = 3 if size < 10 else 2 if size < 100 else 1
    return f"{value:.{decimals}f}"


def t_interval(values: np.ndarray, confidence: float = 0.95) -> Interval:
    """Student's t interval of the mean of `values`, one per run."""
    values = np.asarray(values, float)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"an interval needs one value per run, not an array of shape {values.shape}")
    mean = float(values.mean())
    if values.size == 1:
        return Interval(mean, None, None)
    half = stats.t.ppf(0.5 + confidence / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return Interval(mean, mean - float(half), mean + float(half))
