"""Environment steps per second: ours, a JAX peer and the Python reference, side by side."""

from __future__ import annotations

from typing import Any

import jax
from rich.console import Console

from benchmarks.families import measure
from benchmarks.peers import (
    jaxmarl_mpe,
    jaxmarl_overcooked,
    jumanji_lbf,
    lbforaging_env,
    overcooked_ai_env,
    vmas_mpe,
)
from benchmarks.random_play import Sampler, integers, random_play, reals
from benchmarks.timing import Contender, compare, print_table, result_record
from jaxscope import make
from jaxscope.spaces import Discrete, Space

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

    return random_play(
        f"jaxscope {name}, {num_envs} envs", reset, step, num_envs, env.num_agents, _uniform(env.action_space())
    )


def _uniform(space: Space) -> Sampler:
    if isinstance(space, Discrete):
        return integers(space.n)
    (size,) = space.shape
    return reals(size, space.low, space.high)


def run(repeats: int = 5, env: str | None = None) -> list[dict[str, Any]]:
    """Measure, print and return the records, one per comparison.

    Args:
        env: one of the families here; all by default.

    Raises:
        ValueError: there is no such family here.
    """
    return measure(
        {"lbf": _foraging, "overcooked": _overcooked, "pmr": _meeting, "predator_prey": _hunting}, env, repeats
    )


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


def _meeting(repeats: int) -> list[dict[str, Any]]:
    return _in_the_plane("pmr", jaxmarl_mpe.SPREAD, vmas_mpe.SPREAD, repeats)


def _hunting(repeats: int) -> list[dict[str, Any]]:
    return _in_the_plane("predator_prey", jaxmarl_mpe.TAG, vmas_mpe.TAG, repeats)


def _in_the_plane(name: str, of_jaxmarl: Any, of_vmas: Any, repeats: int) -> list[dict[str, Any]]:
    """Our game beside the particle environments that are nearest to it, at equal bodies and time limits."""
    horizon, records = make(name).horizon, []
    for num_envs in SIZES:
        theirs = jaxmarl_mpe.contender(of_jaxmarl, num_envs, horizon)
        contenders = [ours(name, num_envs), theirs]
        try:
            contenders.append(vmas_mpe.contender(of_vmas, num_envs, horizon))
        except ImportError as error:
            print(f"VMAS is left out: {error}")
        records.append(_measured(name, num_envs, contenders, theirs.name, repeats))
    return records


def _measured(name: str, num_envs: int, contenders: list[Contender], peer: str, repeats: int) -> dict[str, Any]:
    rates = compare(contenders, repeats)
    print_table(rates, f"{name}, {num_envs} environments", peer, Console(width=160))
    return result_record(rates, peer, what="envs", env=name, num_envs=num_envs)
