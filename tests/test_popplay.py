"""PopPlay over partner periods of several iterations."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxscope import ppo
from jaxscope.casting import Partnering
from jaxscope.panel import Panel
from jaxscope.zsc import popplay
from tests.games import Clock
from tests.test_ppo import SMALL, partner_rollout

ENV = Clock(horizon=3 * SMALL.num_steps, shortest=2, longest=40)


def iterations(n, env=ENV):
    """Learners and metrics after each of n iterations with one partner."""
    cfg = popplay.Config(SMALL, Partnering(block_size=4))
    panel = Panel.scripted(env, ["random"])
    step = jax.jit(lambda learner: popplay.iteration(cfg, env, panel.policies, learner))
    learner = popplay.init(cfg, env, panel.policies, panel.population, jax.random.key(0))
    for _ in range(n):
        learner, metrics = step(learner)
        yield learner, metrics


def test_the_mean_of_a_period_is_that_of_all_its_first_episodes():
    """Episodes that end early must not be forgotten when later iterations bring the long ones."""
    episodes = total = 0.0
    for index, (learner, metrics) in enumerate(iterations(3)):
        episodes += float(metrics.episodes.count)
        total += float(metrics.episodes.team_return)
        if index < 2:
            assert int(learner.population.episodes[0]) == 0
    assert episodes == SMALL.num_envs
    assert int(learner.population.episodes[0]) == SMALL.num_envs
    assert float(learner.population.mean_return[0]) == pytest.approx(total / episodes, rel=1e-6)


def test_partners_and_games_stay_for_a_period_and_are_fresh_after_it():
    learners = [learner for learner, _ in iterations(4)]
    goes_on = np.asarray(learners[1].play.env_state.time) > SMALL.num_steps
    assert goes_on.any()
    assert (np.asarray(learners[3].play.env_state.time) <= SMALL.num_steps).all()
    np.testing.assert_array_equal(learners[0].play.casting.seat, learners[2].play.casting.seat)


def test_a_cut_between_periods_is_bootstrapped_even_where_time_limits_are_not():
    env = Clock(horizon=50, shortest=30, longest=40)
    _, _, _, t, _ = partner_rollout(env, SMALL, Partnering(block_size=4), rollouts=1, closing=True)
    strict = dataclasses.replace(SMALL, bootstrap_truncation=False)
    assert t.truncated[-1].all()
    assert not t.time_limit.any()
    np.testing.assert_allclose(ppo.advantages(strict, t), ppo.advantages(SMALL, t))
