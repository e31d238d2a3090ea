"""Environment steps per second: Level-Based Foraging here, in Jumanji and in the Python reference, side by side."""

from __future__ import annotations

from typing import Any

import jax
from rich.console import Console

from benchmarks.peers import jumanji_lbf, lbforaging_env
from benchmarks.random_play import random_play
from benchmarks.timing import Contender, compare, print_table, result_record
from jaxscope import make

SIZES = (64, 1024, 4096)


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


def run(repeats: int = 5) -> list[dict[str, Any]]:
    """Measure, print and return the records: one comparison per sight and number of environments."""
    records = []
    for sight, name in ((None, "lbf/8x8-2p-3f"), (2, "lbf/2s-8x8-2p-3f")):
        reference = lbforaging_env.contender(sight)
        for num_envs in SIZES:
            theirs = jumanji_lbf.contender(num_envs, sight)
            rates = compare([ours(name, num_envs), theirs, reference], repeats)
            print_table(rates, f"{name}, {num_envs} environments", theirs.name, Console(width=160))
            records.append(result_record(rates, theirs.name, what="envs", env=name, num_envs=num_envs))
    return records
