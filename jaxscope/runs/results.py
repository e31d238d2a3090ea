"""Reading finished and unfinished run folders, every value checked before anything is shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxscope.evaluation.intervals import Interval
from jaxscope.runs.settings import FORMAT as CONFIG_FORMAT

FORMAT = 1  # of an evaluation
#: Never mixed: partners that no method may have met, and those that could be trained with.
GROUPS = ("held-out", "training")


@dataclass(frozen=True)
class Returns:
    """Returns of S training runs with the P partners of one group, from each of A seats."""

    per_partner: Float[np.ndarray, "S P"]
    per_seat: Float[np.ndarray, "S P A"]
    mean: Float[np.ndarray, " S"]
    worst: Float[np.ndarray, " S"]
    mean_interval: Interval
    worst_interval: Interval


@dataclass(frozen=True)
class GroupResult(Returns):
    """All that is known of S training runs with the P partners of one group."""

    unshaped: Returns | None  # without shaping, where the environment pays any
    partners: tuple[str, ...]
    descriptions: tuple[str, ...]
    learner_events: dict[str, Float[np.ndarray, "S P"]]  # mean counts an episode
    partner_events: dict[str, Float[np.ndarray, "S P"]]
    random: Float[np.ndarray, " P"]  # nan where unknown
    best_script: Float[np.ndarray, " P"]  # nan where unknown
    best_script_name: tuple[str, ...]  # empty where unknown


@dataclass(frozen=True)
class TrainingCurve:
    """Results at n points along S training runs."""

    frames: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, "n S"]  # held-out
    training_return: Float[np.ndarray, "n S"]  # nan where no episode ended


@dataclass(frozen=True)
class Modes:
    """How S policies solve a game with themselves that can be solved in K ways."""

    outcomes: tuple[str, ...]
    shares: Float[np.ndarray, "S K"]  # of a policy's episodes; the rest were not solved
    modes: tuple[tuple[str, ...], ...]  # most frequent outcomes of every policy: several if tied, none if never solved
    population: int  # policies of which `distinct` is told
    distinct: float  # mean number of different modes in a population of so many; nan where there are fewer policies
    chance: float  # the same where every policy draws its mode


@dataclass(frozen=True)
class Judgement:
    """What one `eval.json` says of one method."""

    method: str
    env: str
    episodes: int  # per run, partner and seat
    iteration: int
    frames: int
    groups: dict[str, GroupResult]
    curve: TrainingCurve | None
    modes: Modes | None  # where an environment names its outcomes

    @property
    def runs(self) -> int:
        """S, the number of training runs."""
        return len(next(iter(self.groups.values())).mean)


@dataclass(frozen=True)
class RunFolder:
    """All that a report shows of one run folder."""

    folder: Path
    config: dict[str, Any]  # the whole config.json
    metrics: tuple[dict[str, Any], ...]  # by seed and frames, the last line of any that were written twice
    judgement: Judgement | None
    recordings: tuple[Path, ...]

    @property
    def method(self) -> str:
        return self.config["method"]

    @property
    def env(self) -> str:
        return self.config["env"]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have metrics."""
        return tuple(sorted({line["seed"] for line in self.metrics}))

    def series(self, *path: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Frames and values of one metric for each seed, only where it was logged: `series("return")`."""
        runs = []
        for seed in self.seeds:
            points = [(line["frames"], _dig(line, path)) for line in self.metrics if line["seed"] == seed]
            points = [(frames, value) for frames, value in points if value is not None]
            runs.append((np.array([p[0] for p in points], float), np.array([p[1] for p in points], float)))
        return runs


def read_run(folder: Path) -> RunFolder:
    """The run in `folder`.

    A last line of `metrics.jsonl` that is cut short, as a killed run leaves it, is left out.

    Raises:
        ValueError: the folder holds no run, or a file in it is damaged; the message names the file.
    """
    folder = Path(folder)
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} is not a run folder: it has no config.json")
    config = _json_object(path.read_bytes(), str(path))
    _known_format(config, str(path), CONFIG_FORMAT)
    for name, kind in (("method", str), ("env", str), ("config", dict)):
        _field(config, name, kind, str(path))
    judgement = None
    if (path := folder / "eval.json").is_file():
        judgement = parse_judgement(_json_object(path.read_bytes(), str(path)), str(path))
        if (judgement.method, judgement.env) != (config["method"], config["env"]):
            raise ValueError(
                f"{path} is of {judgement.method} on {judgement.env}, "
                f"but the run is {config['method']} on {config['env']}"
            )
    recordings = tuple(sorted((folder / "recordings").glob("*.gif")))
    return RunFolder(folder, config, _read_metrics(folder / "metrics.jsonl"), judgement, recordings)


def parse_judgement(payload: Mapping[str, Any], source: str = "evaluation") -> Judgement:
    """The contents of an `eval.json`.

    Raises:
        ValueError: a value is missing or has a wrong type or shape; the message says where in `source`.
    """
    _known_format(payload, source, FORMAT)
    method, env = _field(payload, "method", str, source), _field(payload, "env", str, source)
    checkpoint = _field(payload, "checkpoint", dict, source)
    found = _field(payload, "groups", dict, source)
    groups = {name: _parse_group(_field(found, name, dict, source), f"{source}, {name}") for name in found}
    if not groups:
        raise ValueError(f"{source}: groups is empty")
    if len({len(group.mean) for group in groups.values()}) > 1:
        raise ValueError(f"{source}: the groups have different numbers of training runs")
    judgement = Judgement(
        method=method,
        env=env,
        episodes=_field(payload, "episodes", int, source),
        iteration=_field(checkpoint, "iteration", int, f"{source}, checkpoint"),
        frames=_field(checkpoint, "frames", int, f"{source}, checkpoint"),
        groups=groups,
        curve=None,
        modes=None,
    )
    if payload.get("modes") is not None:
        of_policies = _modes(_field(payload, "modes", dict, source), judgement.runs, f"{source}, modes")
        judgement = replace(judgement, modes=of_policies)
    if payload.get("curve") is None:
        return judgement
    curve, where = _field(payload, "curve", dict, source), f"{source}, curve"
    frames = _numbers(curve, "frames", (len(_field(curve, "frames", list, where)),), where)
    if not (np.diff(frames) > 0).all():
        raise ValueError(f"{where}: frames must increase")
    mean = _numbers(curve, "mean", (len(frames), judgement.runs), where)
    training_return = _numbers(curve, "training_return", mean.shape, where)
    return replace(judgement, curve=TrainingCurve(frames, mean, training_return))


def labels(methods: Sequence[str], folders: Sequence[str] | None = None) -> list[str]:
    """Names to tell methods apart: where one occurs twice, with its folder, or else its number."""
    told = [
        method if methods.count(method) == 1 or folders is None else f"{method} ({folder})"
        for method, folder in zip(methods, folders or methods, strict=True)
    ]
    return [
        label if told.count(label) == 1 else f"{label} #{1 + told[:index].count(label)}"
        for index, label in enumerate(told)
    ]


def _parse_group(group: Mapping[str, Any], source: str) -> GroupResult:
    partners = _names(group, "partners", source)
    p, s = len(partners), len(_field(group, "mean", list, source))
    if p == 0 or s == 0:
        raise ValueError(f"{source}: there must be a partner and a training run, there are {p} and {s}")
    if len(set(partners)) < p:
        raise ValueError(f"{source}: two partners have the same name")
    unshaped = _field(group, "unshaped", dict, source) if group.get("unshaped") is not None else None
    events = _field(group, "events", dict, source) if group.get("events") is not None else {}
    bounds = group.get("bounds") or {}
    unknown = dict.fromkeys(("random", "best script"), [None] * p) | {"best script name": [""] * p}
    bounds = unknown | {name: value for name, value in bounds.items() if value is not None}
    return GroupResult(
        **_returns(group, s, p, source),
        unshaped=None if unshaped is None else Returns(**_returns(unshaped, s, p, f"{source}, unshaped")),
        partners=partners,
        descriptions=_names(group, "descriptions", source, p),
        learner_events=_events(events, "learner", s, p, source),
        partner_events=_events(events, "partner", s, p, source),
        random=_numbers(bounds, "random", (p,), f"{source}, bounds"),
        best_script=_numbers(bounds, "best script", (p,), f"{source}, bounds"),
        best_script_name=_names(bounds, "best script name", f"{source}, bounds", p),
    )


def _modes(record: Mapping[str, Any], s: int, source: str) -> Modes:
    outcomes = _names(record, "outcomes", source)
    if not outcomes or len(set(outcomes)) < len(outcomes):
        raise ValueError(f"{source}: outcomes must be different names, at least one")
    shares = _numbers(record, "shares", (s, len(outcomes)), source)
    if not ((shares >= 0).all() and (shares.sum(axis=1) <= 1 + 1e-6).all()):
        raise ValueError(f"{source}: shares must be from 0 to 1, and so must their sum for every training run")
    found = _field(record, "modes", list, source)
    if len(found) != s or not all(isinstance(row, list) and all(name in outcomes for name in row) for row in found):
        raise ValueError(f"{source}: modes must be a list of outcomes for each of {s} training runs")
    return Modes(
        outcomes,
        shares,
        tuple(tuple(row) for row in found),
        _field(record, "population", int, source),
        float(_numbers(record, "distinct", (), source)),
        float(_numbers(record, "chance", (), source)),
    )


def _returns(record: Mapping[str, Any], s: int, p: int, source: str) -> dict[str, Any]:
    return {
        "per_seat": _numbers(record, "per_seat", (s, p, None), source),
        "per_partner": _numbers(record, "per_partner", (s, p), source),
        "mean": _numbers(record, "mean", (s,), source),
        "worst": _numbers(record, "worst", (s,), source),
        "mean_interval": _interval(record, "mean_interval", source),
        "worst_interval": _interval(record, "worst_interval", source),
    }


def _events(events: Mapping[str, Any], whose: str, s: int, p: int, source: str) -> dict[str, Any]:
    counts = _field(events, whose, dict, f"{source}, events") if whose in events else {}
    return {name: _numbers(counts, name, (s, p), f"{source}, events, {whose}") for name in counts}


def _read_metrics(path: Path) -> tuple[dict[str, Any], ...]:
    if not path.is_file():
        return ()
    lines = path.read_bytes().split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    latest = {}
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            metrics = _json_object(line, where)
        except ValueError:
            if number == len(lines):
                break
            raise
        for name in ("iteration", "frames", "seed"):
            _field(metrics, name, int, where)
        for name in ("return", "unshaped_return", "entropy"):
            if name in metrics:
                _numbers(metrics, name, (), where)
        for name in ("partner_return", "partner_probability"):
            for member in _field(metrics, name, dict, where) if metrics.get(name) else ():
                _numbers(metrics[name], member, (), f"{where}, {name}")
        latest[metrics["seed"], metrics["frames"]] = metrics
    return tuple(latest[key] for key in sorted(latest))


def _dig(line: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = line
    for name in path:
        value = (value or {}).get(name)
    return value


def _json_object(text: bytes, source: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{source} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{source} is a {type(value).__name__}: it must be a JSON object")
    return value


def _known_format(payload: Mapping[str, Any], source: str, known: int) -> None:
    if payload.get("format") != known:
        raise ValueError(f"{source} has format {payload.get('format')!r}: this version reads format {known}")


def _field(payload: Mapping[str, Any], name: str, kind: type, source: str) -> Any:
    value = payload.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        found = "missing" if name not in payload else f"{value!r:.40}"
        raise ValueError(f"{source}: {name} is {found}: it must be a JSON {_KINDS[kind]}")
    return value


_KINDS = {str: "string", int: "integer", dict: "object", list: "array"}


def _names(payload: Mapping[str, Any], name: str, source: str, length: int | None = None) -> tuple[str, ...]:
    values = _field(payload, name, list, source)
    if not all(isinstance(value, str) for value in values) or length not in (None, len(values)):
        raise ValueError(f"{source}: {name} must be {'' if length is None else f'{length} '}strings")
    return tuple(values)


def _numbers(payload: Mapping[str, Any], name: str, shape: tuple[int | None, ...], source: str) -> Any:
    """An array of that shape (None: any length above 0); null counts as nan."""
    try:
        value = np.asarray(payload.get(name), object).astype(float) if name in payload else None
    except (TypeError, ValueError):
        value = None
    found = (0,) if value is None else value.shape
    same = [n == want or (want is None and n > 0) for n, want in zip(found, shape, strict=False)]
    if value is None or len(found) != len(shape) or not all(same):
        wanted = " x ".join("seats" if n is None else str(n) for n in shape) or "one"
        raise ValueError(f"{source}: {name} must be {wanted} number{'s' if shape else ''}")
    return value


def _interval(payload: Mapping[str, Any], name: str, source: str) -> Interval:
    values = _numbers(payload, name, (3,), source)
    mean, low, high = (None if np.isnan(value) else float(value) for value in values)
    return Interval(float("nan") if mean is None else mean, low, high)
