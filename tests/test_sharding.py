"""Training on several devices agrees with training on one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.casting import Partnering
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, panels
from jaxscope.runs.loop import compiled_block
from jaxscope.runs.sharding import shard
from jaxscope.zsc import popplay, self_play

PPO = PPOConfig(frames=16 * 8 * 10, num_envs=16, num_steps=8, minibatches=2, epochs=1, network=NetworkConfig(8))


def settings(method, devices, seeds, env="matching/4-8r"):
    # Moving points have observations of any size: there these are normalised.
    ppo = dataclasses.replace(PPO, network=NetworkConfig(8, normalise=env == "pmr"))
    config = self_play.Config(ppo) if method == "self-play" else popplay.Config(ppo, Partnering(block_size=2))
    partners = ("random",) if method == "popplay" else ()
    return RunSettings(method, env, config, seeds=seeds, partners=partners, devices=devices)


def trained(method, devices, seeds, env, iterations=3):
    run = settings(method, devices, seeds, env)
    env = run.make_env()
    panel = panels.resolve(run.partners, env) if run.partners else None
    learners = shard(jax.jit(lambda: panels.begin(run, env, panel))(), run.module.partition, devices)
    placed = learners.play.obs.sharding.num_devices
    block = compiled_block(run, env, panel.policies if panel else ())
    learners, metrics = block(learners, jnp.asarray(iterations, jnp.int32))
    return placed, learners, metrics


@pytest.mark.parametrize(
    ("method", "seeds", "env"),
    [
        ("self-play", 1, "matching/4-8r"),
        ("popplay", 1, "pmr"),
        ("popplay", 2, "matching/4-8r"),
    ],
)
def test_two_devices_agree_with_one(method, seeds, env):
    """Two seeds: a seed per device. One seed: its environments are spread."""
    _, one, one_metrics = trained(method, 1, seeds, env)
    placed, two, two_metrics = trained(method, 2, seeds, env)
    assert placed == 2
    for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(two.params), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    for a, b in zip(jax.tree.leaves(one_metrics.episodes), jax.tree.leaves(two_metrics.episodes), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    np.testing.assert_allclose(one.reward_scale.spread, two.reward_scale.spread, rtol=1e-5)
    if method == "popplay":
        assert one.population is not None
        assert two.population is not None
        np.testing.assert_allclose(one.population.mean_return, two.population.mean_return, atol=1e-5)


def test_what_cannot_be_divided_is_refused():
    run = settings("self-play", 1, 1)
    learners = jax.eval_shape(lambda: panels.begin(run, run.make_env(), None))
    with pytest.raises(ValueError, match="divides neither seeds = 1 nor num_envs = 16"):
        shard(learners, self_play.partition, 3)
    with pytest.raises(ValueError, match="this machine has"):
        shard(learners, self_play.partition, 1000)
