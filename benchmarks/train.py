"""Trained frames per second: our PPO beside peers of equal network, batch, epochs and minibatches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console

from benchmarks.families import measure
from benchmarks.peers import feedforward_ppo, jaxmarl_overcooked, jumanji_lbf, ppo, recurrent_ppo
from benchmarks.timing import Contender, compare, print_table, result_record
from jaxscope.agents.actor_critic import Memory, NetworkConfig
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, panels
from jaxscope.runs.loop import compiled_block
from jaxscope.runs.sharding import shard
from jaxscope.zsc import popplay, self_play

KITCHEN = "cramped_room"
THEIRS = ppo.Config()


def ours(method: str, env: str, devices: int = 1, memory: Memory = "gru") -> Contender:
    """One seed of a method, rollout and update, with the sizes of `THEIRS`."""
    learning = PPOConfig(
        frames=10**9,
        num_envs=THEIRS.num_envs,
        num_steps=THEIRS.num_steps,
        epochs=THEIRS.num_epochs,
        minibatches=THEIRS.num_minibatches,
        scale_rewards=False,  # as the peers
        network=NetworkConfig(THEIRS.hidden, memory=memory),
    )
    config = self_play.Config(learning) if method == "self-play" else popplay.Config(learning)
    partners = () if method == "self-play" else ("training",)
    iterations = THEIRS.updates_per_call
    settings = RunSettings(
        method, env, config, seeds=1, partners=partners, iterations_per_call=iterations, devices=devices
    )
    game = settings.make_env()
    panel = panels.resolve(partners, game) if partners else None
    block = compiled_block(settings, game, panel.policies if panel else ())
    learners = None

    def run():
        nonlocal learners
        if learners is None:
            learners = shard(jax.jit(lambda: panels.begin(settings, game, panel))(), settings.module.partition, devices)
        learners, metrics = block(learners, jnp.asarray(iterations, jnp.int32))
        return metrics

    of = "GRU" if memory == "gru" else "no memory"
    name = f"jaxscope {method}, {of}, {learning.num_envs}x{learning.num_steps}"
    name += f", {devices} devices" if devices > 1 else ""
    return Contender(name, run, THEIRS.frames_per_call, unit="frames/s")


def run(repeats: int = 5, env: str | None = None) -> list[dict[str, Any]]:
    """Measure, print and return the records, one per table.

    Args:
        env: one of the families here; all by default.

    Raises:
        ValueError: there is no such family here.
    """
    return measure({"lbf": _foraging, "overcooked": _overcooked}, env, repeats)


def _foraging(repeats: int) -> list[dict[str, Any]]:
    name = "lbf/8x8-2p-3f"
    theirs = _recurrent_peer(jumanji_lbf.games(THEIRS.num_envs))
    contenders = [ours("self-play", name), theirs, ours("popplay", name)]
    devices = jax.local_device_count()
    if devices > 1:
        contenders.append(ours("self-play", name, devices))
    return [_measured(name, contenders, theirs.name, repeats)]


def _overcooked(repeats: int) -> list[dict[str, Any]]:
    name = f"overcooked/{KITCHEN}"
    training = feedforward_ppo.make_train(THEIRS, jaxmarl_overcooked.make_env(KITCHEN))
    feedforward = ppo.contender(f"IPPO-FF, jaxmarl {KITCHEN}", THEIRS, training)
    recurrent = _recurrent_peer(jaxmarl_overcooked.games(KITCHEN, THEIRS.num_envs))
    pairs = [(ours("self-play", name, memory="none"), feedforward), (ours("self-play", name), recurrent)]
    return [_measured(name, [*pair], pair[1].name, repeats) for pair in pairs]


def _recurrent_peer(games: Any) -> Contender:
    return ppo.contender(f"PureJaxRL-style PPO, {games.name}", THEIRS, recurrent_ppo.make_train(THEIRS, games))


def _measured(name: str, contenders: list[Contender], peer: str, repeats: int) -> dict[str, Any]:
    rates = compare(contenders, repeats)
    print_table(rates, f"training in {name}, all seats learn except in popplay", peer, Console(width=170))
    return result_record(rates, peer, what="train", env=name)
