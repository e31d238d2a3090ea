"""Observations in units of their spread."""

from __future__ import annotations

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
from games import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxscope import ppo, rollout
from jaxscope.agents import normaliser
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy
from jaxscope.panel import Panel
from jaxscope.ppo import PPOConfig
from jaxscope.runs import panels
from jaxscope.zsc import self_play

NETWORK = NetworkConfig(4, normalise=True)
CFG = PPOConfig(frames=480, num_envs=4, num_steps=6, epochs=2, minibatches=2, network=NETWORK)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 2**31 - 1))
def test_statistics_are_those_of_all_observations(rollouts, seed):
    rng = np.random.default_rng(seed)
    of = {"count": jnp.zeros(()), "mean": jnp.zeros((2, 3)), "squares": jnp.zeros((2, 3))}
    parts = [rng.normal(5.0, 2.0, (steps, 3, 2, 3)).astype(np.float32) for steps in rollouts]
    for part in parts:
        of = normaliser.observe(of, jnp.asarray(part))
    seen = np.concatenate([part.reshape(-1, 2, 3) for part in parts])
    assert of["count"] == len(seen)
    np.testing.assert_allclose(of["mean"], seen.mean(0), rtol=1e-4)
    np.testing.assert_allclose(of["squares"] / of["count"], seen.var(0), rtol=1e-3, atol=1e-4)


def trained(env, iterations=4):
    config = self_play.Config(CFG)
    learner = jax.jit(lambda: self_play.init(config, env, (), None, jax.random.key(0)))()
    step = jax.jit(lambda learner: self_play.iteration(config, env, (), learner)[0])
    for _ in range(iterations):
        learner = step(learner)
    return learner


@dataclasses.dataclass(frozen=True)
class Stretched(Clock):
    """Shows everything times `stretch`, plus 100."""

    stretch: float = 1.0

    def get_obs(self, state):
        return jax.tree.map(lambda obs: self.stretch * obs + 100.0, super().get_obs(state))


def test_training_counts_observations_and_learns_nothing_else_of_them():
    learner = trained(Stretched(horizon=6, shows_time=True))
    of = learner.params["normaliser"]
    assert of["count"] == 4 * 6 * 4 * 2  # iterations, steps, environments, seats
    np.testing.assert_allclose(of["mean"], [101.0, 100.5, 100 + 2.5 / 6], rtol=1e-4)
    moments = [
        leaf for path, leaf in jax.tree_util.tree_leaves_with_path(learner.opt_state) if "normaliser" in str(path)
    ]
    assert len(moments) == 6
    assert all((leaf == 0).all() for leaf in moments)


def test_policies_act_alike_whatever_the_units():
    """Once observations are counted, those of another unit give the same actions; without, they do not."""
    policy = RecurrentPolicy.of(Clock(), NETWORK)
    obs = jax.random.normal(jax.random.key(0), (7, 5, 3))
    params = policy.init(jax.random.key(1))

    def decisions(policy, params, obs):
        distribution, value = policy.unroll(params, policy.initial_carry(5), obs, jnp.zeros((7, 5), bool))
        return distribution.logits, value

    stretched = 3.0 * obs - 40.0
    one, other = (decisions(policy, policy.observe(params, seen), seen) for seen in (obs, stretched))
    chex.assert_trees_all_close(one, other, atol=1e-4)
    plain = dataclasses.replace(policy, network=NetworkConfig(4))
    weights = {name: of for name, of in params.items() if name != "normaliser"}
    assert not np.allclose(decisions(plain, weights, obs)[1], decisions(plain, weights, stretched)[1])
    chex.assert_trees_all_equal(plain.observe(weights, obs), weights)


def test_before_any_observation_nothing_is_changed():
    policy = RecurrentPolicy.of(Clock(), NETWORK)
    net = policy._bind(policy.init(jax.random.key(1)))
    assert net.normaliser is not None
    obs = jnp.array([0.5, -2.0, 9.0])
    np.testing.assert_allclose(net.normaliser(obs), obs, rtol=1e-5)
    assert (net.normaliser(jnp.array([1e9, -1e9, 0.0])) == jnp.array([10.0, -10.0, 0.0])).all()


def test_kept_policies_take_their_statistics_along(tmp_path):
    env = Clock()
    policy = RecurrentPolicy.of(env, NETWORK)
    params = policy.observe(policy.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (5, 4, 3)))
    panels.save(Panel.learned(policy, jax.tree.map(lambda leaf: leaf[None], params), ["one"]), tmp_path / "kept")
    again = panels.load(tmp_path / "kept", env)
    assert again.policies == (policy,)
    chex.assert_trees_all_equal(again.population.gather(jnp.int32(0), 0), params)
    assert again.population.gather(jnp.int32(0), 0)["normaliser"]["count"] == 20


def test_statistics_do_not_change_between_acting_and_learning():
    """An update of one step takes its loss at the weights that acted, so its ratio is 1."""
    env = Stretched(horizon=6, shows_time=True)
    once = dataclasses.replace(CFG, epochs=1, minibatches=1)
    policy, learner = ppo.policy(once, env), trained(env, 2)

    @jax.jit
    def update():
        play, update_key = jax.random.split(jax.random.key(3))
        _, trajectory, _ = rollout.self_play(env, policy, learner.params, learner.play, 6, play)
        return ppo.update(once, policy, learner, trajectory, update_key)

    after, means = update()
    assert after.params["normaliser"]["count"] > learner.params["normaliser"]["count"]
    assert float(means["kl"]) < 1e-9
