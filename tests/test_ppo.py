"""The learner's invariants: replay, truncation, gradients, seats, shuffling."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxscope import make, ppo, rollout
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy
from jaxscope.casting import Partnering
from jaxscope.panel import Panel, join
from jaxscope.ppo import Batch, PPOConfig
from jaxscope.zsc import popplay, self_play
from tests.games import Clock, Steered

SMALL = PPOConfig(frames=8 * 8 * 4, num_envs=8, num_steps=8, minibatches=2, network=NetworkConfig(8))
ENDS = {"horizon": 6, "shortest": 2, "longest": 9}  # ends of both kinds inside a rollout
CLOCK, STEERED = functools.partial(Clock, **ENDS), functools.partial(Steered, **ENDS)


def partners_of(env, learned=2):
    policy = RecurrentPolicy.of(env, NetworkConfig(4))
    params = jax.vmap(policy.init)(jax.random.split(jax.random.key(77), learned))
    return join(Panel.learned(policy, params, [f"l{i}" for i in range(learned)]), Panel.scripted(env, ["random"]))


def self_play_rollout(env, cfg, rollouts=2):
    """The last of several rollouts, so that recurrent states come from before it."""
    policy = ppo.policy(cfg, env)
    params = jax.tree.map(lambda x: 3.0 * x, policy.init(jax.random.key(0)))
    play = rollout.begin_self_play(env, policy, cfg.num_envs, jax.random.key(1))
    roll = jax.jit(lambda play, key: rollout.self_play(env, policy, params, play, cfg.num_steps, key))
    for index in range(rollouts):
        play, trajectory, episodes = roll(play, jax.random.key(10 + index))
    return policy, params, play, trajectory, episodes


def partner_rollout(env, cfg, partnering, rollouts=2, closing=False):
    policy, panel = ppo.policy(cfg, env), partners_of(env)
    params = jax.tree.map(lambda x: 3.0 * x, policy.init(jax.random.key(0)))
    play = rollout.begin_with_partners(
        env, policy, panel.policies, panel.population, partnering, cfg.num_envs, jax.random.key(1)
    )
    roll = jax.jit(
        lambda play, key: rollout.with_partners(
            env,
            policy,
            panel.policies,
            params,
            panel.population,
            partnering,
            play,
            cfg.num_steps,
            key,
            closing,
        )
    )
    for index in range(rollouts):
        play, trajectory, episodes = roll(play, jax.random.key(10 + index))
    return policy, params, play, trajectory, episodes


KINDS = ("self-play", "blocks", "environments")
#: What differs in the learner: with and without memory, and with vectors of real numbers as actions.
LEARNERS = ("gru", "none", "vectors")


@functools.cache
def rolled(kind, learner="gru", shows_time=False):
    env = (STEERED if learner == "vectors" else CLOCK)(shows_time=shows_time)
    cfg = dataclasses.replace(SMALL, network=NetworkConfig(8, memory="none" if learner == "none" else "gru"))
    if kind == "self-play":
        return self_play_rollout(env, cfg)
    return partner_rollout(env, cfg, Partnering(block_size=4) if kind == "blocks" else Partnering(dispatch="env"))


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_replay_equals_the_rollout_with_episode_ends_inside(kind, learner):
    policy, params, _, trajectory, _ = rolled(kind, learner)
    assert trajectory.reset[1:].any()
    assert not trajectory.reset[0].all()
    assert trajectory.terminated.any()
    assert trajectory.truncated.any()
    distribution, value = policy.unroll(params, trajectory.carry, trajectory.obs, trajectory.reset)
    ratio = jnp.exp(distribution.log_prob(trajectory.act.action) - trajectory.act.log_prob)
    np.testing.assert_allclose(ratio, 1.0, atol=1e-5)
    np.testing.assert_allclose(value, trajectory.act.value, atol=1e-5)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_minibatch_has_ratio_one(kind, learner):
    policy, params, _, trajectory, _ = rolled(kind, learner)
    batch = Batch(trajectory, ppo.advantages(SMALL, trajectory))
    first = jax.tree.map(lambda x: x[0], ppo.shuffled(batch, SMALL.minibatches, jax.random.key(5)))
    _, metrics = ppo.loss(SMALL, policy, params, first)
    assert float(metrics["kl"]) < 1e-9
    assert float(metrics["clip_fraction"]) == 0.0


def test_without_memory_decisions_depend_on_the_present_alone():
    policy, params, _, trajectory, _ = rolled("self-play", "none")
    assert "gru" not in params
    shuffled = jax.random.permutation(jax.random.key(6), trajectory.obs)  # over time
    _, value = policy.unroll(params, trajectory.carry, trajectory.obs, trajectory.reset)
    _, of_shuffled = policy.unroll(params, trajectory.carry, shuffled, trajectory.reset)
    np.testing.assert_allclose(jnp.sort(of_shuffled, axis=0), jnp.sort(value, axis=0), atol=1e-6)


def test_a_replay_with_flags_one_step_late_is_caught():
    """The wrong convention, resets taken after the step, must show: else the tests above prove nothing."""
    policy, params, _, trajectory, _ = rolled("self-play")
    late = jnp.concatenate([trajectory.reset[1:], trajectory.reset[:1]])
    _, value = policy.unroll(params, trajectory.carry, trajectory.obs, late)
    assert float(jnp.abs(value - trajectory.act.value).max()) > 1e-2


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_gets_gradient(kind, learner):
    policy, params, _, trajectory, _ = rolled(kind, learner)
    batch = Batch(trajectory, ppo.advantages(SMALL, trajectory))
    # The clipped surrogate alone can lack a gradient through logits at first; the advantage is given some spread.
    batch = batch._replace(advantage=jax.random.normal(jax.random.key(3), batch.advantage.shape))
    grads = jax.grad(lambda p: ppo.loss(SMALL, policy, p, batch)[0])(params)
    shown = {"/".join(str(k.key) for k in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(grads)}
    assert all(float(jnp.abs(leaf).max()) > 0 for leaf in shown.values()), shown


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_after_a_step_are_those_of_the_unreset_game(kind, learner):
    """Between ends the next value is the next step's; at a cut it is the value of the final observation."""
    policy, params, _, t, _ = rolled(kind, learner, shows_time=True)
    carry = t.carry
    cuts = 0
    for step in range(SMALL.num_steps):
        carry, _, value = policy._forward(params, carry, t.obs[step], t.reset[step])
        np.testing.assert_allclose(value, t.act.value[step], atol=1e-5)
        # At a cut the time shown is the whole horizon; the seat is in the observation before it.
        final = t.obs[step].at[:, 2].set(1.0)
        at_cut = policy.value(params, carry, final)
        here = np.asarray(t.truncated[step])
        cuts += here.sum()
        np.testing.assert_allclose(np.asarray(t.next_value[step])[here], np.asarray(at_cut)[here], atol=1e-5)
        if step + 1 < SMALL.num_steps:
            goes_on = ~(here | np.asarray(t.terminated[step]))
            following = np.asarray(t.act.value[step + 1])
            np.testing.assert_allclose(np.asarray(t.next_value[step])[goes_on], following[goes_on], atol=1e-5)
    assert cuts > 0


def test_bootstrapping_makes_a_time_limit_invisible_to_the_value():
    """Reward 1 a step, gamma 0.9, horizon 5: the value is 10 at every step with bootstrapping, at most 4.1 without."""
    env = Clock(horizon=5, shows_time=True)
    base = PPOConfig(
        frames=16 * 20 * 60,
        num_envs=16,
        num_steps=20,
        minibatches=2,
        gamma=0.9,
        gae_lambda=0.95,
        learning_rate=1e-2,
        clip=10.0,
        anneal=True,
        max_grad_norm=10.0,
        scale_rewards=False,  # the values are compared in units of the reward
        network=NetworkConfig(16),
    )

    def values(cfg):
        method = self_play.Config(cfg)

        @jax.jit
        def train(key):
            learner = self_play.init(method, env, (), None, key)
            body = lambda learner, _: (self_play.iteration(method, env, (), learner)[0], None)  # noqa: E731
            return jax.lax.scan(body, learner, None, length=cfg.iterations)[0]

        learner = train(jax.random.key(0))
        _, trajectory, _ = rollout.self_play(
            env, ppo.policy(cfg, env), learner.params, learner.play, 20, jax.random.key(1)
        )
        shown = np.asarray(trajectory.obs[..., 2])
        return [float(trajectory.act.value[np.isclose(shown, t / 5)].mean()) for t in range(5)]

    bootstrapped = values(base)
    cut = values(dataclasses.replace(base, bootstrap_truncation=False))
    assert np.allclose(bootstrapped, 10.0, atol=1.0), bootstrapped
    want = [(1 - 0.9 ** (5 - t)) / 0.1 for t in range(5)]
    assert np.allclose(cut, want, atol=0.5), cut


def test_closing_a_period_truncates_what_still_runs_and_only_that():
    env = Clock(horizon=50, shortest=3, longest=30)
    _, _, _, open_, _ = partner_rollout(env, SMALL, Partnering(block_size=4), rollouts=1)
    _, _, _, closed, _ = partner_rollout(env, SMALL, Partnering(block_size=4), rollouts=1, closing=True)
    np.testing.assert_array_equal(closed.truncated[:-1], open_.truncated[:-1])
    np.testing.assert_array_equal(closed.truncated[-1], ~closed.terminated[-1])
    assert not open_.truncated[-1].all()


def test_blocks_count_the_first_episode_of_a_period_only():
    env = Clock(horizon=50, shortest=2, longest=3)
    _, _, _, _, episodes = partner_rollout(env, SMALL, Partnering(block_size=4), rollouts=1)
    np.testing.assert_array_equal(episodes.counted.sum(axis=0), 1)
    _, _, _, _, every = partner_rollout(env, SMALL, Partnering(dispatch="env"), rollouts=1)
    assert (every.counted.sum(axis=0) >= 2).all()


def test_episode_returns_and_lengths_are_those_of_complete_episodes():
    _, _, _, _, episodes = self_play_rollout(CLOCK(), SMALL, rollouts=3)
    counted = np.asarray(episodes.counted)
    assert counted.any()
    np.testing.assert_array_equal(np.asarray(episodes.team_return)[counted], np.asarray(episodes.length)[counted])
    assert set(np.asarray(episodes.length)[counted]) <= set(range(2, 7))


def test_shuffling_keeps_sequences_whole():
    _, _, _, trajectory, _ = rolled("self-play")
    rows = trajectory.act.value.shape[1]
    marked = trajectory._replace(
        reward=jnp.broadcast_to(jnp.arange(rows, dtype=jnp.float32), trajectory.reward.shape),
        carry=jnp.broadcast_to(jnp.arange(rows, dtype=jnp.float32)[:, None], trajectory.carry.shape),
    )
    batches = ppo.shuffled(Batch(marked, marked.reward), 2, jax.random.key(0))
    assert batches.advantage.shape == (2, SMALL.num_steps, rows // 2)
    for index in range(2):
        who = batches.trajectory.reward[index]
        np.testing.assert_array_equal(who, jnp.broadcast_to(who[:1], who.shape))
        np.testing.assert_array_equal(batches.trajectory.carry[index][:, 0], who[0])
    assert sorted(batches.trajectory.reward[:, 0].ravel().tolist()) == list(range(rows))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"num_envs": -1}, "num_envs = -1"),
        ({"num_envs": 10, "minibatches": 4}, "multiple of minibatches"),
        ({"frames": 10}, "less than one iteration"),
        ({"gamma": 1.5}, r"\[0, 1\]"),
        ({"learning_rate": 0.0}, "positive"),
        ({"entropy": -1.0}, "negative"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes, says):
    with pytest.raises(ValueError, match=says):
        dataclasses.replace(PPOConfig(), **changes)


def test_popplay_needs_partners():
    with pytest.raises(ValueError, match="at least one partner"):
        popplay.init(popplay.Config(SMALL), make("matching/4"), (), None, jax.random.key(0))
