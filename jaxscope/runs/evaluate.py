"""Evaluating runs: every seed of every run with held-out and with training partners, and bounds beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from jaxscope.agents.scripted import description, family, partner_names
from jaxscope.agents.scripted_group import is_scripted
from jaxscope.evaluation import Evaluation, evaluate
from jaxscope.evaluation.crossplay import CrossPlay, crossplay
from jaxscope.evaluation.heldout import play
from jaxscope.evaluation.intervals import t_interval
from jaxscope.files import write_text
from jaxscope.panel import Panel, join, subset
from jaxscope.runs import panels
from jaxscope.runs import settings as run_settings
from jaxscope.types import Environment

FORMAT = 1


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
    asked = [run_settings.load(folder) for folder in folders]
    records: dict[Path, dict[str, Any]] = {}
    for env_name in dict.fromkeys(settings.env for settings in asked):
        of_env = [(folder, s) for folder, s in zip(folders, asked, strict=True) if s.env == env_name]
        records |= _evaluate_in(of_env[0][1].make_env(), of_env, episodes, seed, partners)
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
    members = [_unique(panels.of_run(folder, env), folder) for folder in folders]
    if partners:
        members.append(panels.resolve(partners, env))
    return env, crossplay(env, join(*members), episodes, _games_key(seed))


def _games_key(seed: int) -> PRNGKeyArray:
    """The root of evaluation games, apart from that of training with the same seed."""
    return jax.random.fold_in(jax.random.key(seed), 1)


def _unique(panel: Panel, folder: Path) -> Panel:
    """Names with the whole path, since two runs may have the same folder name."""
    names = tuple(f"{folder}:{name.rsplit(':', 1)[1]}" for name in panel.names)
    return Panel(names, panel.policies, panel.population)


def _evaluate_in(env: Environment, runs, episodes: int, seed: int, partners: Sequence[str]) -> dict[Path, dict]:
    iterations = {folder: panels.newest_iteration(folder) for folder, _ in runs}
    learned = {folder: _unique(panels.of_run(folder, env, iterations[folder]), folder) for folder, _ in runs}
    met = {
        folder: panels.load(folder / "population", env)
        for folder, s in runs
        if s.module.MEETS_PARTNERS and not partners
    }
    chosen = panels.resolve(partners, env) if partners else None
    groups = {"chosen": chosen} if chosen else _held_out(env)
    bounds = Panel.scripted(env, partner_names(env.name))
    learners = join(*learned.values(), bounds)
    met_in = {folder: _told_apart(panel, folder) for folder, panel in met.items()}
    everyone = _merged([*groups.values(), *met_in.values()])
    result = evaluate(env, learners, everyone, episodes, _games_key(seed))
    records = {}
    for folder, settings in runs:
        record = _header(iterations[folder], settings, episodes, seed)
        of_run = {name: (panel.names, panel.names) for name, panel in groups.items()}
        if folder in met:
            of_run["training"] = (met_in[folder].names, met[folder].names)
        record["groups"] = {
            name: _group(env, result, learned[folder].names, found_as, shown_as, bounds.names)
            for name, (found_as, shown_as) in of_run.items()
        }
        trained_with = set(met[folder].names) if folder in met else set()
        for name, group in record["groups"].items():
            group["met_in_training"] = [] if name == "training" else sorted(trained_with & set(group["partners"]))
        record["self_play"] = _self_play(env, learned[folder], episodes, seed)
        records[folder] = record
    return records


def _told_apart(panel: Panel, folder: Path) -> Panel:
    """Learned members named after the run that met them too: another run's partner of the same name may differ."""
    learned = [not is_scripted(policy) for policy in panel.policies]
    of_member = [flag for flag, size in zip(learned, panel.population.sizes, strict=True) for _ in range(size)]
    names = [f"{folder}: {name}" if flag else name for name, flag in zip(panel.names, of_member, strict=True)]
    return Panel(tuple(names), panel.policies, panel.population)


def _held_out(env: Environment) -> dict[str, Panel]:
    names = partner_names(env.name, "held-out")
    return {"held-out": Panel.scripted(env, names)} if names else {}


def _merged(groups: list[Panel]) -> Panel:
    """All partners once, though groups may share them."""
    if not groups:
        raise ValueError("there are no partners to evaluate with: name some with --partners")
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
        "checkpoint": {"iteration": iteration, "frames": iteration * settings.config.ppo.frames_per_iteration},
    }


def _group(env: Environment, result: Evaluation, seeds, found_as, partners, bounds) -> dict[str, Any]:
    """The figures of one run with one group of partners, which `result` may know under longer names."""
    of_seeds = result.select(seeds, found_as)
    of_bounds = result.select(bounds, found_as)
    scripts = of_bounds.per_partner()
    return {
        "partners": list(partners),
        "descriptions": [_describe(name, env) for name in partners],
        "per_partner": of_seeds.per_partner().tolist(),
        "per_seat": of_seeds.per_seat().tolist(),
        "mean": of_seeds.mean().tolist(),
        "worst": of_seeds.worst().tolist(),
        "mean_interval": list(t_interval(of_seeds.mean())),
        "worst_interval": list(t_interval(of_seeds.worst())),
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


def _describe(name: str, env: Environment) -> str:
    if name in partner_names(env.name):
        return description(name, env.name)
    return f"a policy of an earlier run, {family(env.name)}"


def _self_play(env: Environment, panel: Panel, episodes: int, seed: int) -> list[float]:
    """Mean return of every seed with itself in all seats."""
    teams = [[member] * env.num_agents for member in range(len(panel.names))]
    return play(env, panel, teams, episodes, _games_key(seed)).team_return.mean(axis=1).tolist()
