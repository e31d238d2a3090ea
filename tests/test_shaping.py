"""Shaped rewards that fade inside the compiled loop."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from games import Clock

from jaxscope import evaluation, ppo, rollout
from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.panel import Panel
from jaxscope.ppo import PPOConfig
from jaxscope.runs import metrics
from jaxscope.zsc import self_play

CFG = PPOConfig(frames=480, num_envs=4, num_steps=6, epochs=1, minibatches=2, network=NetworkConfig(4))


@dataclass(frozen=True)
class Hinted(Clock):
    """Pays 1 a step, of which 0.25 for the first seat and 0.5 for the second is shaping."""

    shared_reward: bool = False  # pyright: ignore[reportIncompatibleVariableOverride]
    pays_shaping = True

    def step_env(self, key, state, actions):
        obs, state, rewards, dones, info = super().step_env(key, state, actions)
        return obs, state, rewards, dones, info | {"shaping": jnp.array([0.25, 0.5])}


@functools.cache
def trajectory(env):
    policy = ppo.policy(CFG, env)
    play = rollout.begin_self_play(env, policy, CFG.num_envs, jax.random.key(0))
    roll = jax.jit(lambda: rollout.self_play(env, policy, policy.init(jax.random.key(1)), play, 6, jax.random.key(2)))
    return roll()[1]


@pytest.mark.parametrize(("env", "team", "part"), [(Hinted(), 2.0, 0.75), (Hinted(shared_reward=True), 1.0, 0.25)])
def test_a_rollout_tells_shaping_from_the_rest(env, team, part):
    assert (trajectory(env).reward == team).all()
    assert (trajectory(env).shaping == part).all()


def test_where_none_is_paid_there_is_nothing_to_fade_or_to_leave_out():
    assert (trajectory(Clock()).shaping == 0).all()
    fading = self_play.Config(dataclasses.replace(CFG, shaping_frames=24))
    with pytest.raises(ValueError, match="shaping_frames = 24, but clock/5 pays no shaping"):
        self_play.init(fading, Clock(), (), None, jax.random.key(0))
    alone = evaluation.evaluate(Clock(), random_player(Clock()), random_player(Clock()), episodes=2)
    with pytest.raises(ValueError, match="no shaping to leave out"):
        alone.unshaped()


@pytest.mark.parametrize(("env", "team", "part"), [(Hinted(), 2.0, 0.75), (Hinted(shared_reward=True), 1.0, 0.25)])
def test_evaluation_leaves_shaping_out_where_asked(env, team, part):
    env = dataclasses.replace(env, shortest=2, longest=4)
    found = evaluation.evaluate(env, random_player(env), random_player(env), episodes=16)
    assert len(set(found.length.ravel())) > 1
    np.testing.assert_allclose(found.team_return, team * found.length)
    np.testing.assert_allclose(found.unshaped().team_return, (team - part) * found.length)
    np.testing.assert_allclose(found.unshaped().worst(), found.worst() * (team - part) / team)


def test_training_logs_the_return_without_shaping_too():
    env = Hinted(horizon=3)
    plain, hinted = (one_iteration(game) for game in (Clock(horizon=3), env))
    assert "unshaped_return" not in plain
    assert (hinted["return"], hinted["unshaped_return"]) == (6.0, 3.75)


def test_shaping_fades_linearly_to_nothing():
    fading = dataclasses.replace(CFG, shaping_frames=4 * CFG.frames_per_iteration)
    paid = [float(ppo.faded(fading, trajectory(Hinted()), jnp.int32(i)).reward[0, 0]) for i in range(6)]
    np.testing.assert_allclose(paid, [2.0 - 0.75 * gone for gone in (0, 0.25, 0.5, 0.75, 1, 1)])
    stays = ppo.faded(CFG, trajectory(Hinted()), jnp.int32(5)).reward
    np.testing.assert_array_equal(stays, trajectory(Hinted()).reward)
    with pytest.raises(ValueError, match="shaping_frames = 0"):
        dataclasses.replace(CFG, shaping_frames=0)


def random_player(env):
    return Panel.scripted(env, ["random"])


def one_iteration(env):
    """The line of metrics of one iteration of self-play."""
    config = self_play.Config(CFG)
    learner = self_play.init(config, env, (), None, jax.random.key(0))
    _, found = jax.jit(lambda learner: self_play.iteration(config, env, (), learner))(learner)
    return metrics.summarise(jax.tree.map(lambda x: np.asarray(x)[None, None], found), 1, 24, ())[0]


def test_one_compiled_iteration_fades_and_reports_the_whole_return():
    """The critic learns from what is left; the return shown is the environment's."""
    env, targets = Hinted(horizon=3), []
    fading = self_play.Config(dataclasses.replace(CFG, shaping_frames=CFG.frames_per_iteration))
    traces = []

    @jax.jit
    def iterate(learner):
        traces.append(learner)
        return self_play.iteration(fading, env, (), learner)

    learner = jax.jit(lambda: self_play.init(fading, env, (), None, jax.random.key(0)))()
    for weight in (1.0, 0.0):
        learner, found = iterate(learner)
        assert found.episodes.team_return / found.episodes.count == 6.0
        assert found.means["shaping_weight"] == weight
        targets.append(float(found.means["value_loss"]))
    assert len(traces) == 1
    assert targets[1] < 0.7 * targets[0]  # of the 2 paid each step 1.25 are left, and the critic has hardly moved
