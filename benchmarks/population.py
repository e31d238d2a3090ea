"""Partner steps per second: blocks of environments that share a partner beside a gather per environment."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console

from benchmarks.timing import Contender, compare, print_table, result_record
from jaxscope import dispatch, make, rollout
from jaxscope.agents.actor_critic import RecurrentPolicy
from jaxscope.population import Population
from jaxscope.types import View

ENV = "lbf/8x8-2p-3f"
STEPS = 10


def contender(how: str, num_envs: int, partners: int, block: int) -> Contender:
    """GRU-64 partners acting for `STEPS` steps, parameters gathered once per block or in every step per environment."""
    env = make(ENV)
    policy = RecurrentPolicy.of(env)
    members = [policy.init(jax.random.key(index)) for index in range(partners)]
    population = Population.stack(members)
    obs, state = rollout.reset_envs(env, num_envs, jax.random.key(0))
    view = View(obs[None, :, 0].astype(jnp.float32), state, jnp.zeros((1, num_envs), jnp.int32))
    ids = jax.random.randint(jax.random.key(1), (num_envs // block,), 0, partners)
    if how == "gather":
        ids = jnp.repeat(ids, block)

    @jax.jit
    def act(ids, view, key):
        parts = dispatch.cast((policy,), population, ids)
        memory = dispatch.initial_memory(parts, 1, num_envs)

        def step(memory, time):
            keys = jax.random.split(jax.random.fold_in(key, time), (1, num_envs))
            if how == "block":
                actions, memory = dispatch.block_actions((policy,), parts, memory, view, keys)
            else:
                # Partners change at episode starts, so a gather per environment is due in every step.
                drawn = (ids + time) % partners
                own = dispatch.cast((policy,), population, drawn)
                actions, memory = dispatch.env_actions((policy,), own, memory, view, keys)
            return memory, actions.sum()

        return jax.lax.scan(step, memory, jnp.arange(STEPS))[1]

    name = f"{how}s of {block}" if how == "block" else "gather per environment"
    return Contender(name, lambda: act(ids, view, jax.random.key(2)), num_envs * STEPS, unit="partner steps/s")


def run(repeats: int = 5) -> list[dict[str, Any]]:
    """Measure, print and return the records."""
    records = []
    for num_envs, partners in ((256, 4), (1024, 12)):
        rates = compare(
            [contender("block", num_envs, partners, 16), contender("gather", num_envs, partners, 16)], repeats
        )
        title = f"{partners} GRU-64 partners in {num_envs} environments"
        print_table(rates, title, "gather per environment", Console(width=150))
        records.append(
            result_record(rates, "gather per environment", what="population", num_envs=num_envs, partners=partners)
        )
    return records
