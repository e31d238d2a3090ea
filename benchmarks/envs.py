"""Environment steps per second: ours, a JAX peer and the Python reference, side by side."""

from __future__ import annotations

from typing import Any

import jax
from rich.console import Console

from benchmarks.peers import jaxmarl_overcooked, jumanji_lbf, lbforaging_env, overcooked_ai_env
from benchmarks.random_play import random_play
from benchmarks.timing import Contender, compare, print_table, result_record
from jaxscope import make

FAMILIES = ("lbf", "overcooked")
SIZES = (64, 1024, 4096)
KITCHEN = "cramped_room"


def ours(name: str, num_envs: int) -> Contender:
    """Our environment with auto-reset, random actions."""
    env = make(name)

    def reset(key):
        obs, state = jax.vmap(env.reset)(jax.random.split(key, num_envs))
        return state, obs

    def step(key, state, actions):
        keys = jax.random.split(key, num_envs)
        named = {agent: actions[:, seat] for seat, agent in enumerate(env.agents)}
        obs, state, rewards, _, _ = jax.vmap(env.step)(keys, state, named)
        return state, obs, env.team_reward(rewards)

    return random_play(f"jaxscope {name}, {num_envs} envs", reset, step, num_envs, env.num_agents, 6)


def run(repeats: int = 5, env: str | None = None) -> list[dict[str, Any]]:
    """Measure, print and return the records, one per comparison.

    Args:
        env: one of `FAMILIES`; all by default.

    Raises:
        ValueError: there is no such family here.
    """
    if env is not None and env not in FAMILIES:
        raise ValueError(f"env = {env!r}: there are benchmarks of {' and '.join(FAMILIES)}")
    measured = {"lbf": _foraging, "overcooked": _overcooked}
    return [record for family in FAMILIES if env in (None, family) for record in measured[family](repeats)]


def _foraging(repeats: int) -> list[dict[str, Any]]:
    records = []
    for sight, name in ((None, "lbf/8x8-2p-3f"), (2, "lbf/2s-8x8-2p-3f")):
        reference = lbforaging_env.contender(sight)
        for num_envs in SIZES:
            contenders = [ours(name, num_envs), jumanji_lbf.contender(num_envs, sight), reference]
            records.append(_measured(name, num_envs, contenders, contenders[1].name, repeats))
    return records


def _overcooked(repeats: int) -> list[dict[str, Any]]:
    records = []
    name = f"overcooked/{KITCHEN}"
    reference = overcooked_ai_env.contender(KITCHEN)
    for num_envs in SIZES:
        theirs = jaxmarl_overcooked.contender(KITCHEN, num_envs)
        kitchens = [ours(name, num_envs), ours(f"{name}?observation=vector", num_envs)]
        records.append(_measured(name, num_envs, [*kitchens, theirs, reference], theirs.name, repeats))
    return records


def _measured(name: str, num_envs: int, contenders: list[Contender], peer: str, repeats: int) -> dict[str, Any]:
    rates = compare(contenders, repeats)
    print_table(rates, f"{name}, {num_envs} environments", peer, Console(width=160))
    return result_record(rates, peer, what="envs", env=name, num_envs=num_envs)
