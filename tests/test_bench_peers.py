"""Training peers: networks of our size, and learners that run in JaxMARL's Overcooked."""

import math
import warnings

import jax
import jax.numpy as jnp
import pytest

from benchmarks.peers import feedforward_ppo, jaxmarl_overcooked, ppo, recurrent_ppo
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
