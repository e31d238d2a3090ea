"""Panels from names and from disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import jax

from jaxscope import registry
from jaxscope.agents.scripted import ROLES, partner_names
from jaxscope.agents.scripted_group import is_scripted
from jaxscope.files import write_text
from jaxscope.panel import Panel, join
from jaxscope.runs import settings as run_settings
from jaxscope.runs import snapshots
from jaxscope.runs.checkpoints import Checkpoints
from jaxscope.types import Environment, LearnedPolicy

AGENTS = "jaxscope.agents"
SCRIPTED = "scripted"  # also the name of their file


def resolve(names: Sequence[str], env: Environment) -> Panel:
    """The panel that `names` ask for.

    Args:
        names: scripted partners (`closest-food`), all of a role (`training`, `held-out`, `bound`), or folders of runs
            (each seed becomes a member). A name that contains a `/` or starts with `.` is a folder.

    Raises:
        ValueError: a name does not exist, nothing is asked for, or a run belongs to other spaces.
    """
    if not names:
        raise ValueError("no partners were named")
    panels, scripts = [], []
    for name in names:
        if "/" in name or name.startswith("."):
            panels.append(of_run(Path(name), env))
        elif name in ROLES:
            scripts += _of_role(env, name)
        else:
            scripts.append(name)
    if scripts:
        panels.append(Panel.scripted(env, scripts))
    return join(*panels)


def _of_role(env: Environment, role: str) -> list[str]:
    names = partner_names(env.name, role)
    if not names:
        raise ValueError(
            f"{env.name} has no {role} partners; name others: {', '.join(partner_names(env.name))}, or folders of runs"
        )
    return names


def of_run(folder: Path, env: Environment | None = None, iteration: int | None = None) -> Panel:
    """The policies of a checkpoint of a run (the newest by default), one member per seed.

    Raises:
        ValueError: there is no run, no whole checkpoint, or `env` has other spaces than the run's environment.
    """
    settings, own, policy = _policy_of_run(folder, env)
    checkpoints = Checkpoints(folder / "checkpoints", writable=False)
    try:
        params = checkpoints.restore(learners_like(settings, own, folder), iteration).params
    finally:
        checkpoints.close()
    return Panel.learned(policy, params, _seed_names(folder, settings))


def snapshots_of_run(folder: Path, env: Environment | None = None) -> dict[int, Panel]:
    """The policies of a run by iteration, as far as snapshots were kept, one member per seed.

    Raises:
        ValueError: there is no run, a snapshot is damaged, or `env` has other spaces than the run's environment.
    """
    settings, own, policy = _policy_of_run(folder, env)
    like = learners_like(settings, own, folder).params
    store = snapshots.store(folder, writable=False)
    try:
        params = {iteration: store.restore(like, iteration) for iteration in store.iterations()}
    finally:
        store.close()
    names = _seed_names(folder, settings)
    return {iteration: Panel.learned(policy, of_seeds, names) for iteration, of_seeds in params.items()}


def _policy_of_run(folder: Path, env: Environment | None):
    settings = run_settings.load(folder)
    own = settings.make_env()
    policy = settings.module.policy(settings.config, own)
    if env is not None and _spaces(env) != _spaces(own):
        raise ValueError(f"{folder} was trained in {settings.env}, whose spaces differ from those of {env.name}")
    return settings, own, policy


def _spaces(env: Environment):
    """What a policy must be made for; bounds of observations may differ."""
    return env.observation_space().shape, env.action_space()


def _seed_names(folder: Path, settings: run_settings.RunSettings) -> list[str]:
    return [f"{folder.resolve().name}:{seed}" for seed in range(settings.seeds)]


def newest_iteration(folder: Path) -> int:
    """The iteration of a run's newest checkpoint.

    Raises:
        ValueError: there is no whole checkpoint yet.
    """
    checkpoints = Checkpoints(folder / "checkpoints", writable=False)
    try:
        iteration = checkpoints.latest()
    finally:
        checkpoints.close()
    if iteration is None:
        raise ValueError(f"{folder} holds no complete checkpoint yet")
    return iteration


def learners_like(settings: run_settings.RunSettings, env: Environment, folder: Path):
    """The shapes of a run's learners, without computing any."""
    panel = load(folder / "population", env) if settings.module.MEETS_PARTNERS else None
    return jax.eval_shape(lambda: begin(settings, env, panel))


def begin(settings: run_settings.RunSettings, env: Environment, panel: Panel | None):
    """The learners of all seeds before their first iteration, stacked: leaves `[S, ...]`."""
    keys = jax.random.split(jax.random.key(settings.seed), settings.seeds)
    policies, population = (panel.policies, panel.population) if panel else ((), None)
    return jax.vmap(lambda key: settings.module.init(settings.config, env, policies, population, key))(keys)


def save(panel: Panel, folder: Path) -> None:
    """Keep a panel with a run: names, policies, and the parameters of learned members."""
    kinds, start = [], 0
    for policy, size in zip(panel.policies, panel.population.sizes, strict=True):
        names = list(panel.names[start : start + size])
        start += size
        if is_scripted(policy):
            kinds.append({"kind": SCRIPTED, "names": names})
        elif isinstance(policy, LearnedPolicy) and (file := _own_file(policy)):
            kinds.append({"kind": file, "names": names, "policy": policy.describe()})
        else:
            raise ValueError(
                f"members of type {type(policy).__name__} cannot be kept with a run: a policy that can has a file "
                "directly under agents/ with a function restore(env, description)"
            )
    folder.mkdir(parents=True, exist_ok=True)
    members = _learned(panel.policies, panel.population.members)
    if members:
        store = Checkpoints(folder / "members")
        try:
            store.save(0, members)
        finally:
            store.close()
    write_text(folder / "members.json", json.dumps(kinds, indent=2) + "\n")


def _own_file(policy: LearnedPolicy) -> str | None:
    """The name of the file under `agents/` that can restore a policy."""
    name = type(policy).__module__.rpartition(".")[2]
    known = name in registry.names(AGENTS) and hasattr(registry.load(AGENTS, name), "restore")
    return name if known else None


def load(folder: Path, env: Environment) -> Panel:
    """The panel that `save` kept.

    Raises:
        ValueError: there is none, or it is damaged.
    """
    try:
        kinds = json.loads((folder / "members.json").read_text())
        parts = [_without_params(kind, env) for kind in kinds]
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder} holds no readable population: {error}") from error
    policies = [part.policies[0] for part in parts]
    like = _learned(policies, [part.population.members[0] for part in parts])
    members = _restored(folder / "members", like) if like else {}
    for index, of_kind in members.items():
        parts[int(index)] = Panel.learned(policies[int(index)], of_kind, parts[int(index)].names)
    return join(*parts)


def _without_params(kind: dict, env: Environment) -> Panel:
    """The members of one kind; in place of what they have learned, its shapes."""
    if kind["kind"] == SCRIPTED:
        return Panel.scripted(env, kind["names"])
    policy = registry.load(AGENTS, kind["kind"]).restore(env, kind["policy"])
    return Panel.learned(policy, _stacked_like(policy, len(kind["names"])), kind["names"])


def _learned(policies, members) -> dict[str, object]:
    """Parameters of the kinds that have learned, by the number of the kind."""
    both = enumerate(zip(policies, members, strict=True))
    return {str(index): of_kind for index, (policy, of_kind) in both if not is_scripted(policy)}


def _restored(folder: Path, like: dict[str, object]) -> dict[str, object]:
    store = Checkpoints(folder, writable=False)
    try:
        return store.restore(like)
    finally:
        store.close()


def _stacked_like(policy: LearnedPolicy, size: int):
    one = jax.eval_shape(policy.init, jax.random.key(0))
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape), leaf.dtype), one)
