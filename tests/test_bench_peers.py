"""Peers: networks of our size that train in JaxMARL's Overcooked, and games like ours that are played at random."""

import math
import sys
import warnings

import jax
import jax.numpy as jnp
import pytest

from benchmarks.envs import ours
from benchmarks.peers import feedforward_ppo, jaxmarl_mpe, jaxmarl_overcooked, ppo, recurrent_ppo, vmas_mpe
from benchmarks.random_play import integers, random_play, reals
from jaxscope import make
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy

KITCHEN = "cramped_room"
TINY = ppo.Config(num_envs=4, num_steps=3, updates_per_call=2, num_epochs=2, num_minibatches=2, hidden=8)


@pytest.fixture(autouse=True)
def their_habits():
    """JaxMARL calls its first Overcooked outdated, and it and Flax broadcast over ranks."""
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def training(memory):
    if memory == "none":
        return feedforward_ppo.make_train(TINY, jaxmarl_overcooked.make_env(KITCHEN))
    return recurrent_ppo.make_train(TINY, jaxmarl_overcooked.games(KITCHEN, TINY.num_envs))


@pytest.mark.parametrize("memory", ["gru", "none"])
def test_a_peer_has_as_many_parameters_as_we_have(memory):
    policy = RecurrentPolicy.of(make(f"overcooked/{KITCHEN}"), NetworkConfig(TINY.hidden, memory=memory))
    ours = jax.eval_shape(policy.init, jax.random.key(0))
    theirs = jax.eval_shape(training(memory).init, jax.random.key(0)).params
    count = lambda tree: sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))  # noqa: E731
    assert count(ours) == count(theirs)


@pytest.mark.parametrize("memory", ["gru", "none"])
def test_a_peer_trains(memory):
    peer = training(memory)
    learner = peer.init(jax.random.key(0))
    before = jax.tree.map(jnp.copy, learner.params)
    learner, metrics = peer.update(learner)
    assert metrics["loss"].shape == (TINY.updates_per_call,)
    assert jnp.isfinite(metrics["loss"]).all()
    changes = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), before, learner.params)
    assert all(change > 0 for change in jax.tree.leaves(changes)), changes


@pytest.mark.parametrize(("name", "game"), [("pmr", jaxmarl_mpe.SPREAD), ("predator_prey", jaxmarl_mpe.TAG)])
def test_particle_environments_have_our_bodies_and_time_limit(name, game):
    env, mine = jaxmarl_mpe.make_env(game, horizon=3), make(name)
    _, state = env.reset(jax.random.key(0))
    still = {agent: jnp.zeros(5) for agent in env.agents}
    dones = []
    for time in range(3):
        _, state, _, done, _ = env.step_env(jax.random.key(time), state, still)
        dones.append(bool(done["__all__"]))
    assert dones == [False, False, True]
    _, own = mine.reset(jax.random.key(0))
    bodies = [2, 4] if name == "pmr" else [len(own.predators), len(own.prey)]
    assert len(state.p_pos) == sum(bodies)
    assert env.num_agents == (2 if name == "pmr" else sum(bodies))


def test_random_play_steps_every_game_with_sampled_actions():
    seen = []

    def step(key, state, actions):
        del key
        seen.append(actions.shape)
        return state + 1, 0 * actions, actions.sum((1, 2)) > -jnp.inf

    counted = random_play(
        "one", lambda key: (0 * jax.random.bits(key), jnp.zeros((4, 2, 3))), step, 4, 2, reals(3, -1, 1), 8
    )
    assert (counted.steps, float(counted.run()), float(counted.run())) == (32, 32, 64)
    assert set(seen) == {(4, 2, 3)}
    drawn = reals(3, -1, 1)(jax.random.key(0), (512, 2))
    assert (drawn >= -1).all()
    assert (drawn < 1).all()
    assert abs(drawn.mean()) < 0.1
    assert set(integers(5)(jax.random.key(0), (64, 2)).reshape(-1).tolist()) == set(range(5))


@pytest.mark.parametrize("name", ["matching/4", "pmr"])
def test_ours_plays_with_actions_of_either_kind(name):
    assert jnp.isfinite(ours(name, 65_536).run())


def test_vmas_is_asked_for_only_where_it_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "vmas", None)
    with pytest.raises(ImportError, match=r"vmas is not installed.*pip install vmas==1\.5\.2 torch"):
        vmas_mpe.contender(vmas_mpe.SPREAD, 2, 3)
