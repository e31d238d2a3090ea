"""Evaluating runs: every seed of every run with held-out and with training partners, and bounds beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from jaxscope.agents.scripted import description, family, partner_names
from jaxscope.agents.scripted_group import is_scripted
from jaxscope.evaluation import Evaluation, modes
from jaxscope.evaluation.crossplay import CrossPlay, crossplay
from jaxscope.evaluation.heldout import require_halves
from jaxscope.evaluation.intervals import t_interval
from jaxscope.evaluation.pairs import Pair, PairResults, play_pairs
from jaxscope.files import write_text
from jaxscope.panel import Panel, join, subset
from jaxscope.runs import metrics, panels
from jaxscope.runs import settings as run_settings
from jaxscope.runs.results import FORMAT
from jaxscope.types import Environment

#: Policies in the populations whose modes are counted: as many as PopGen gives a cooperator of self-play partners.
POPULATION = 4


def evaluate_runs(
    folders: Sequence[Path], episodes: int = 50, seed: int = 0, partners: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Evaluate the newest checkpoint of each run and write its `eval.json`.

    Runs of one environment are evaluated together, so that one program serves all of them and all meet the same games.

    Args:
        folders: runs; their environments may differ.
        episodes: per seed, partner and seat.
        partners: judge with these instead (see `panels.resolve`), as a group called `chosen`; the records then go to
            `eval-chosen.json` and leave the main result alone.

    Returns:
        The records written, in the order of `folders`.
    """
    names = {folder: run_settings.load(folder).env for folder in folders}
    records: dict[Path, dict[str, Any]] = {}
    for name in dict.fromkeys(names.values()):
        of_env = [folder for folder in folders if names[folder] == name]
        records |= _evaluate_in(run_settings.load(of_env[0]).make_env(), of_env, episodes, seed, partners)
    for folder, record in records.items():
        write_text(folder / ("eval-chosen.json" if partners else "eval.json"), json.dumps(record, indent=2) + "\n")
    return [records[folder] for folder in folders]


def crossplay_runs(
    folders: Sequence[Path], episodes: int, seed: int, partners: Sequence[str]
) -> tuple[Environment, CrossPlay]:
    """Everybody with everybody: all seeds of all runs, and scripted partners if named."""
    settings = [run_settings.load(folder) for folder in folders]
    names = sorted({s.env for s in settings})
    if len(names) != 1:
        raise ValueError(f"cross-play needs runs of one environment, not of {', '.join(names)}")
    env = settings[0].make_env()
    members = [_unique(panels.of_run(folder, env), str(folder)) for folder in folders]
    if partners:
        members.append(panels.resolve(partners, env))
    return env, crossplay(env, join(*members), episodes, _games_key(seed))


def _games_key(seed: int) -> PRNGKeyArray:
    """The root of evaluation games, apart from that of training with the same seed."""
    return jax.random.fold_in(jax.random.key(seed), 1)


def _unique(panel: Panel, where: str) -> Panel:
    """Names with the whole path, since two runs may have the same folder name."""
    names = tuple(f"{where}:{name.rsplit(':', 1)[1]}" for name in panel.names)
    return Panel(names, panel.policies, panel.population)


@dataclass(frozen=True)
class _Run:
    """A run under evaluation; its policies and partners are named as among all members."""

    folder: Path
    settings: run_settings.RunSettings
    iteration: int  # of the newest checkpoint
    seeds: tuple[str, ...]
    snapshots: dict[int, tuple[str, ...]]  # seeds by iteration; none where there are no held-out partners
    groups: dict[str, tuple[str, ...]]  # partners to judge with
    shown_as: dict[str, str]  # partners whose own names are shorter
    met: tuple[str, ...]  # partners of its training, by their own names

    def pairs(self, bounds: tuple[str, ...]) -> list[Pair]:
        """Everything that has to be played for this run."""
        met = [(who, partner) for group in self.groups.values() for who in self.seeds + bounds for partner in group]
        itself = [(seed, seed) for seed in self.seeds]
        along = [
            (who, partner) for seeds in self.snapshots.values() for who in seeds for partner in self.groups["held-out"]
        ]
        return met + itself + along


def _evaluate_in(env: Environment, folders, episodes: int, seed: int, partners: Sequence[str]) -> dict[Path, dict]:
    require_halves(episodes)
    bounds = Panel.scripted(env, partner_names(env.name))
    chosen = panels.resolve(partners, env) if partners else None
    gathered = {folder: _gather(env, folder, chosen) for folder in folders}
    everyone = _merged([bounds, *(panel for _, members in gathered.values() for panel in members)])
    runs = {folder: run for folder, (run, _) in gathered.items()}
    pairs = [pair for run in runs.values() for pair in run.pairs(bounds.names)]
    results = play_pairs(env, everyone, pairs, episodes, _games_key(seed))
    return {folder: _record(env, run, results, bounds.names, episodes, seed) for folder, run in runs.items()}


def _gather(env: Environment, folder: Path, chosen: Panel | None) -> tuple[_Run, list[Panel]]:
    """A run and the members that it takes to judge it."""
    settings = run_settings.load(folder)
    iteration = panels.newest_iteration(folder)
    learned = _unique(panels.of_run(folder, env, iteration), str(folder))
    met = panels.load(folder / "population", env) if settings.module.MEETS_PARTNERS else None
    groups = {} if chosen else _held_out(env)
    label, own = ("chosen", chosen) if chosen else ("training", met)
    shown_as: dict[str, str] = {}
    if own is not None:
        groups[label] = _told_apart(own, label if chosen else str(folder))
        shown_as = dict(zip(groups[label].names, own.names, strict=True))
    if not groups:
        raise ValueError("there are no partners to evaluate with: name some with --partners")
    along = {} if "held-out" not in groups else _snapshots(env, folder, iteration, learned)
    run = _Run(
        folder,
        settings,
        iteration,
        learned.names,
        {at: panel.names for at, panel in along.items()},
        {name: panel.names for name, panel in groups.items()},
        shown_as,
        met.names if met else (),
    )
    return run, [learned, *groups.values(), *along.values()]


def _snapshots(env: Environment, folder: Path, newest: int, learned: Panel) -> dict[int, Panel]:
    """The run at its snapshots; the newest checkpoint is not played twice."""
    kept = panels.snapshots_of_run(folder, env)
    along = {at: _unique(panel, f"{folder}@{at}") for at, panel in kept.items() if at < newest}
    return {**along, newest: learned} if along else {}


def _record(
    env: Environment, run: _Run, results: PairResults, bounds: tuple[str, ...], episodes: int, seed: int
) -> dict[str, Any]:
    record = _header(run.iteration, run.settings, episodes, seed)
    record["groups"] = {name: _group(env, run, results, group, bounds) for name, group in run.groups.items()}
    for name, group in record["groups"].items():
        group["met_in_training"] = [] if name == "training" else sorted(set(run.met) & set(group["partners"]))
    record["self_play"] = [float(Evaluation.of_pairs(results, [who], [who]).mean()[0]) for who in run.seeds]
    if env.outcomes:
        record["modes"] = _modes(env, run, results)
    if run.snapshots:
        record["curve"] = _curve(run, results)
    return record


def _modes(env: Environment, run: _Run, results: PairResults) -> dict[str, Any]:
    """How every seed solves the game with itself, and how many of the ways populations of the seeds cover."""
    rows = [results.index[seed, seed] for seed in run.seeds]
    kinds = results.learner_events, results.partner_events
    # One seat says it all: a policy with itself plays the very same games from every seat.
    counts = np.stack([sum(kind[name][rows, 0] for kind in kinds) for name in env.outcomes], axis=1)
    shares = modes.shares(counts > 0)
    found = modes.modes(shares)
    return {
        "outcomes": list(env.outcomes),
        "shares": shares.tolist(),
        "modes": [[name for name, is_mode in zip(env.outcomes, row, strict=True) if is_mode] for row in found],
        "population": POPULATION,
        "distinct": modes.distinct_modes(found, POPULATION) if len(rows) >= POPULATION else None,
        "chance": modes.expected_distinct(POPULATION, len(env.outcomes)),
    }


def _curve(run: _Run, results: PairResults) -> dict[str, Any]:
    """The held-out mean of every seed along the run, and the return that it saw in training there.

    The latter is what a best checkpoint may be picked by: held-out partners may not choose what they judge.
    """
    mean = [Evaluation.of_pairs(results, seeds, run.groups["held-out"]).mean() for seeds in run.snapshots.values()]
    frames = [at * run.settings.config.frames_per_iteration for at in run.snapshots]
    logged = {
        (line["iteration"], line["seed"]): line.get("return") for line in metrics.read(run.folder / "metrics.jsonl")
    }
    training = [[logged.get((at, seed)) for seed in range(len(run.seeds))] for at in run.snapshots]
    return {"frames": frames, "mean": np.stack(mean).tolist(), "training_return": training}


def _told_apart(panel: Panel, where: str) -> Panel:
    """Learned members named after where they come from too: elsewhere one of the same name may differ."""
    learned = [not is_scripted(policy) for policy in panel.policies]
    of_member = [flag for flag, size in zip(learned, panel.population.sizes, strict=True) for _ in range(size)]
    names = [f"{where}: {name}" if flag else name for name, flag in zip(panel.names, of_member, strict=True)]
    return Panel(tuple(names), panel.policies, panel.population)


def _held_out(env: Environment) -> dict[str, Panel]:
    names = partner_names(env.name, "held-out")
    return {"held-out": Panel.scripted(env, names)} if names else {}


def _merged(groups: list[Panel]) -> Panel:
    """All members once, though groups may share them."""
    merged = groups[0]
    for panel in groups[1:]:
        new = [index for index, name in enumerate(panel.names) if name not in merged.names]
        if new:
            merged = join(merged, subset(panel, new))
    return merged


def _header(iteration: int, settings, episodes: int, seed: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "method": settings.method,
        "env": settings.env,
        "episodes": episodes,
        "seed": seed,
        "versions": run_settings.versions(),
        "checkpoint": {"iteration": iteration, "frames": iteration * settings.config.frames_per_iteration},
    }


def _group(
    env: Environment, run: _Run, results: PairResults, partners: tuple[str, ...], bounds: tuple[str, ...]
) -> dict[str, Any]:
    """The figures of one run with one group of partners."""
    of_seeds = Evaluation.of_pairs(results, run.seeds, partners)
    of_bounds = Evaluation.of_pairs(results, bounds, partners)
    shown = [run.shown_as.get(name, name) for name in partners]
    scripts = of_bounds.per_partner()
    return {
        "partners": shown,
        "descriptions": [_describe(name, env) for name in shown],
        **_returns(of_seeds),
        "unshaped": None if of_seeds.shaping is None else _returns(of_seeds.unshaped()),
        "events": {
            "learner": {name: count.mean(axis=(2, 3)).tolist() for name, count in of_seeds.learner_events.items()},
            "partner": {name: count.mean(axis=(2, 3)).tolist() for name, count in of_seeds.partner_events.items()},
        },
        "bounds": {
            "random": scripts[list(bounds).index("random")].tolist(),
            "best script": of_bounds.best_learner().tolist(),
            "best script name": [bounds[index] for index in scripts.argmax(axis=0)],
        },
    }


def _returns(of_seeds: Evaluation) -> dict[str, Any]:
    return {
        "per_partner": of_seeds.per_partner().tolist(),
        "per_seat": of_seeds.per_seat().tolist(),
        "mean": of_seeds.mean().tolist(),
        "worst": of_seeds.worst().tolist(),
        "mean_interval": list(t_interval(of_seeds.mean())),
        "worst_interval": list(t_interval(of_seeds.worst())),
    }


def _describe(name: str, env: Environment) -> str:
    if name in partner_names(env.name):
        return description(name, env.name)
    return f"a policy of an earlier run, {family(env.name)}"
