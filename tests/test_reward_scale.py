"""Rewards in units of the spread of returns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from games import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxscope import ppo, reward_scale
from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.ppo import PPOConfig
from jaxscope.zsc import self_play

CFG = PPOConfig(
    frames=480, num_envs=4, num_steps=6, epochs=2, minibatches=2, network=NetworkConfig(4), scale_rewards=True
)


@dataclass(frozen=True)
class Paying(Clock):
    """Pays each action's number times `pay` a step."""

    pay: float = 1.0

    def step_env(self, key, state, actions):
        obs, state, rewards, dones, info = super().step_env(key, state, actions)
        paid = self.pay * jnp.stack([actions[agent] for agent in self.agents]).sum().astype(jnp.float32)
        return obs, state, dict.fromkeys(rewards, paid), dones, info


def trained(env, cfg, iterations=3):
    config = self_play.Config(cfg)
    learner = jax.jit(lambda: self_play.init(config, env, (), None, jax.random.key(0)))()
    step = jax.jit(lambda learner: self_play.iteration(config, env, (), learner))
    for _ in range(iterations):
        learner, metrics = step(learner)
    return learner, metrics


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 4), st.integers(1, 5), st.floats(0, 1), st.integers(0, 2**31 - 1))
def test_statistics_are_those_of_all_discounted_returns(rollouts, steps, gamma, seed):
    rng = np.random.default_rng(seed)
    reward = rng.normal(3.0, 2.0, (rollouts, steps, 3)).astype(np.float32)
    reset = rng.random((rollouts, steps, 3)) < 0.3
    scale = reward_scale.begin(3)
    assert scale.spread == 1
    for one in range(rollouts):
        scale = reward_scale.observe(scale, reward[one], reset[one], gamma)
    running, seen = np.zeros(3), []
    for reward_t, reset_t in zip(reward.reshape(-1, 3), reset.reshape(-1, 3), strict=True):
        running = gamma * np.where(reset_t, 0, running) + reward_t
        seen.append(running)
    np.testing.assert_allclose(scale.running, running, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scale.mean, np.mean(seen), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scale.spread, np.std(seen), rtol=1e-3)


def test_the_currency_of_a_game_does_not_matter():
    """Powers of two change no digit, so the weights must be equal to the last bit; without scaling they differ."""
    one, many = (trained(Paying(pay=pay), CFG) for pay in (1.0, 64.0))
    jax.tree.map(np.testing.assert_array_equal, one[0].params, many[0].params)
    assert many[1].episodes.team_return == 64 * one[1].episodes.team_return
    assert many[1].means["reward_spread"] == 64 * one[1].means["reward_spread"] > 0
    plain = dataclasses.replace(CFG, scale_rewards=False)
    raw = [trained(Paying(pay=pay), plain)[0].params["critic"]["kernel"] for pay in (1.0, 64.0)]
    assert not np.allclose(*raw)


def test_without_any_reward_nothing_is_scaled():
    learner, _ = trained(Paying(pay=0.0), CFG)
    assert learner.reward_scale is not None
    assert learner.reward_scale.spread == 1
    plain, _ = trained(Paying(pay=0.0), dataclasses.replace(CFG, scale_rewards=False))
    jax.tree.map(np.testing.assert_array_equal, learner.params, plain.params)


@pytest.mark.parametrize("reward", [0.1, 1.0, 0.3, 123.4])
def test_equal_returns_have_no_spread(reward):
    """Rounding is none either: to divide by it would make rewards of a million."""
    scale = reward_scale.begin(4)
    for _ in range(20):
        scale = reward_scale.observe(scale, jnp.full((50, 4), reward), jnp.ones((50, 4), bool), 0.99)
    assert scale.spread == 1


def test_a_first_reward_after_many_without_is_cut_off():
    scale, none = reward_scale.begin(64), jnp.zeros((50, 64))
    for _ in range(100):
        scale = reward_scale.observe(scale, none, none > 0, 0.99)
    first = none.at[30, 7].set(20.0)
    scale = reward_scale.observe(scale, first, none > 0, 0.99)
    assert 20.0 / scale.spread > 100
    assert scale.scaled(first).max() == reward_scale.LARGEST
    assert scale.scaled(-first).min() == -reward_scale.LARGEST


@pytest.mark.parametrize("scale_rewards", [True, False])
def test_the_first_rollout_is_scaled_by_itself(scale_rewards):
    cfg = dataclasses.replace(CFG, scale_rewards=scale_rewards)
    config = self_play.Config(cfg)
    learner = self_play.init(config, Clock(), (), None, jax.random.key(0))
    _, trajectory, _ = jax.jit(
        lambda: ppo.rollout.self_play(Clock(), ppo.policy(cfg, Clock()), learner.params, learner.play, 6, learner.key)
    )()
    scale, scaled = ppo.scaled(cfg, learner.reward_scale, trajectory)
    if scale is None:
        assert not scale_rewards
        np.testing.assert_array_equal(scaled.reward, 1.0)
    else:
        np.testing.assert_allclose(scaled.reward, 1 / scale.spread)
        assert scale.spread != 1
