"""Trained frames per second: our recurrent PPO beside a PureJaxRL-style one of equal network and batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console

from benchmarks.peers import recurrent_ppo
from benchmarks.timing import Contender, compare, print_table, result_record
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, panels
from jaxscope.runs.loop import compiled_block
from jaxscope.runs.sharding import shard
from jaxscope.zsc import popplay, self_play

ENV = "lbf/8x8-2p-3f"
ITERATIONS = 4


def ours(method: str, devices: int, num_envs: int = 256, num_steps: int = 50) -> Contender:
    """One seed of a method, rollout and update."""
    ppo = PPOConfig(frames=10**9, num_envs=num_envs, num_steps=num_steps, minibatches=4)  # as the peer
    config = self_play.Config(ppo) if method == "self-play" else popplay.Config(ppo)
    partners = () if method == "self-play" else ("training",)
    settings = RunSettings(
        method, ENV, config, seeds=1, partners=partners, iterations_per_call=ITERATIONS, devices=devices
    )
    env = settings.make_env()
    panel = panels.resolve(partners, env) if partners else None
    block = compiled_block(settings, env, panel.policies if panel else ())
    learners = None

    def run():
        nonlocal learners
        if learners is None:
            learners = shard(jax.jit(lambda: panels.begin(settings, env, panel))(), settings.module.partition, devices)
        learners, metrics = block(learners, jnp.asarray(ITERATIONS, jnp.int32))
        return metrics

    name = f"jaxscope {method}, {num_envs}x{num_steps}, {devices} device{'s' if devices > 1 else ''}"
    return Contender(name, run, num_envs * num_steps * ITERATIONS, unit="frames/s")


def run(repeats: int = 5) -> list[dict[str, Any]]:
    """Measure, print and return the record."""
    theirs = recurrent_ppo.contender(recurrent_ppo.Config(updates_per_call=ITERATIONS))
    contenders = [ours("self-play", 1), theirs, ours("popplay", 1)]
    devices = jax.local_device_count()
    if devices > 1:
        contenders.append(ours("self-play", devices))
    rates = compare(contenders, repeats)
    print_table(rates, f"training in {ENV}, both seats learn except in popplay", theirs.name, Console(width=170))
    return [result_record(rates, theirs.name, what="train", env=ENV)]
