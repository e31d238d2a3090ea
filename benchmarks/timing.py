"""Measuring rates of several contenders fairly: compiled first, then interleaved, with the load of the machine beside.

The unit of a contender is whatever it says: joint environment steps, trained frames, tokens. Figures of different
machines or of different runs are not comparable; only the rates of one `compare` call are.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

#: Distributions whose versions a record names where they are installed.
PACKAGES = ("jaxscope", "jax", "jaxlib", "flax", "optax", "numpy", "jumanji", "lbforaging", "jaxmarl", "vmas", "torch")


@dataclass(frozen=True)
class Contender:
    """Something to be timed.

    `run` does one timed piece of work and returns the arrays to wait for (or None); it may carry its own state from
    call to call. `steps` is how many units one call does.
    """

    name: str
    run: Callable[[], Any]
    steps: int
    unit: str = "steps/s"


@dataclass(frozen=True)
class Rate:
    """How fast a contender was: `rates` are units per second, one for each repeat, in the order of measuring.

    `compile_seconds` is the first call beyond the time of a usual call. `own_cores` is the mean number of processors
    that this process kept busy during the repeats, `other_cores` what everything else on the machine did meanwhile
    (None where the system does not tell): a figure with much of the latter is a lower bound.
    """

    name: str
    unit: str
    steps_per_call: int
    rates: tuple[float, ...]
    compile_seconds: float
    own_cores: float
    other_cores: float | None

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def low(self) -> float:
        return min(self.rates)

    @property
    def high(self) -> float:
        return max(self.rates)

    def record(self) -> dict[str, Any]:
        """A dict that `json` can write."""
        return {**asdict(self), "median": self.median, "min": self.low, "max": self.high}


@dataclass(frozen=True)
class Ratio:
    """`name`'s rate over `reference`'s, formed repeat by repeat so that both met the same state of the machine."""

    name: str
    reference: str
    median: float
    low: float
    high: float


def median_rate(run: Callable[[], Any], steps: int, repeats: int = 5) -> Rate:
    """The rate of one function that does `steps` units a call; see `compare`."""
    return compare([Contender("run", run, steps)], repeats)[0]


def compare(contenders: Sequence[Contender], repeats: int = 5) -> list[Rate]:
    """The rates of `contenders`, in their order.

    Each is called once to compile and once more to settle (the first call after compilation also moves data and fills
    caches). Then every round calls each contender once, A B C A B C ..., so that a drift of the machine meets all.

    Raises:
        ValueError: without contenders, with two of one name, or with fewer than one repeat.
    """
    names = [contender.name for contender in contenders]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"contenders must be one or more with different names, got {names}")
    if repeats < 1:
        raise ValueError(f"repeats must be 1 or more, got {repeats}")

    first_calls = [_timed(contender).wall for contender in contenders]
    for contender in contenders:
        _timed(contender)
    rounds = [[_timed(contender) for contender in contenders] for _ in range(repeats)]
    return [
        _rate(contender, first_call, list(calls))
        for contender, first_call, calls in zip(contenders, first_calls, zip(*rounds, strict=True), strict=True)
    ]


def ratios(rates: Sequence[Rate], reference: str) -> list[Ratio]:
    """Every rate of one `compare` call over that of the contender called `reference`, itself included.

    Raises:
        ValueError: when no rate has that name, or the units differ.
    """
    by_name = {rate.name: rate for rate in rates}
    if reference not in by_name:
        raise ValueError(f"no contender is called {reference!r}; there are {sorted(by_name)}")
    base = by_name[reference]
    if any(rate.unit != base.unit for rate in rates):
        raise ValueError(f"only rates of one unit compare, got {sorted({rate.unit for rate in rates})}")
    result = []
    for rate in rates:
        paired = [ours / theirs for ours, theirs in zip(rate.rates, base.rates, strict=True)]
        result.append(Ratio(rate.name, reference, statistics.median(paired), min(paired), max(paired)))
    return result


def machine_record() -> dict[str, Any]:
    """What a figure depends on beside the code: processor, devices, versions, load and date. JSON can write it."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "backend": jax.default_backend(),
        "devices": [device.device_kind for device in jax.devices()],
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "packages": _versions(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def result_record(rates: Sequence[Rate], reference: str | None = None, **settings: Any) -> dict[str, Any]:
    """One JSON-able result: machine, settings, rates and, given a `reference`, the paired ratios to it."""
    record = {"machine": machine_record(), "settings": settings, "rates": [rate.record() for rate in rates]}
    if reference is not None:
        record["ratios"] = [asdict(ratio) for ratio in ratios(rates, reference)]
    return record


def write_json(path: str | Path, record: Any) -> None:
    """Writes `record` to `path`, readable by people too."""
    Path(path).write_text(json.dumps(record, indent=2) + "\n")


def print_table(
    rates: Sequence[Rate], title: str, reference: str | None = None, console: Console | None = None
) -> None:
    """Prints `rates` as a table; given a `reference`, also the paired ratio to it."""
    table = Table(title=title)
    table.add_column("contender", no_wrap=True)
    for heading in ("median", "min", "max"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    if reference is not None:
        table.add_column(f"x {reference}", justify="right")
    for heading in ("compile s", "cores", "others' cores"):
        table.add_column(heading, justify="right")

    shares = ratios(rates, reference) if reference is not None else [None] * len(rates)
    for rate, share in zip(rates, shares, strict=True):
        cells = [rate.name, *(f"{value:,.0f}" for value in (rate.median, rate.low, rate.high)), rate.unit]
        if share is not None:
            cells.append(f"{share.median:.2f} [{share.low:.2f}, {share.high:.2f}]")
        others = "?" if rate.other_cores is None else f"{rate.other_cores:.2f}"
        table.add_row(*cells, f"{rate.compile_seconds:.1f}", f"{rate.own_cores:.2f}", others)
    (console or Console()).print(table)


@dataclass(frozen=True)
class _Call:
    wall: float
    own: float
    busy: float | None


def _timed(contender: Contender) -> _Call:
    """Seconds of one call: elapsed, of this process's processors, and of all processors of the machine."""
    busy, own, start = _busy_seconds(), time.process_time(), time.perf_counter()
    jax.block_until_ready(contender.run())
    wall, own, busy_after = time.perf_counter() - start, time.process_time() - own, _busy_seconds()
    return _Call(wall, own, None if busy is None or busy_after is None else busy_after - busy)


def _rate(contender: Contender, first_call: float, calls: Sequence[_Call]) -> Rate:
    wall = sum(call.wall for call in calls)
    own = sum(call.own for call in calls)
    busy = [call.busy for call in calls if call.busy is not None]
    return Rate(
        name=contender.name,
        unit=contender.unit,
        steps_per_call=contender.steps,
        rates=tuple(contender.steps / call.wall for call in calls),
        compile_seconds=max(0.0, first_call - statistics.median(call.wall for call in calls)),
        own_cores=own / wall,
        # The system counts in ticks, so a difference of short calls may come out just below zero.
        other_cores=max(0.0, (sum(busy) - own) / wall) if len(busy) == len(calls) else None,
    )


def _busy_seconds() -> float | None:
    """Seconds that all processors together have worked since boot, or None where the system does not tell."""
    try:
        ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
