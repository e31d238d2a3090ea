"""Encoders: convolutions are those of Flax, and every weight learns."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jaxscope import make
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy
from jaxscope.agents.dense import linear
from jaxscope.agents.distributions import Categorical
from jaxscope.agents.encoders import neighbourhoods
from jaxscope.evaluation import evaluate
from jaxscope.panel import Panel
from jaxscope.runs import panels


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_neighbourhoods_and_a_product_are_a_convolution(batch):
    x = jax.random.normal(jax.random.key(0), (*batch, 5, 4, 6))
    conv = nnx.Conv(6, 8, (3, 3), rngs=nnx.Rngs(0))
    layer = nnx.Linear(9 * 6, 8, rngs=nnx.Rngs(1))
    layer.kernel[...] = conv.kernel[...].reshape(9 * 6, 8)
    assert layer.bias is not None
    layer.bias[...] = jnp.arange(8.0)
    expected = conv(x) + jnp.arange(8.0).reshape((1,) * (x.ndim - 1) + (8,))
    np.testing.assert_allclose(linear(layer, neighbourhoods(x)), expected, atol=1e-4)


KITCHEN = make("overcooked/cramped_room")


@pytest.mark.parametrize("memory", ["gru", "none"])
@pytest.mark.parametrize("encoder", ["dense", "conv"])
def test_every_weight_of_a_policy_of_grids_gets_gradient(encoder, memory):
    policy = RecurrentPolicy.of(KITCHEN, NetworkConfig(8, encoder, memory))
    policy = dataclasses.replace(policy, support=None)  # the observations drawn here are of no kitchen
    params_key, obs_key, weight_key = jax.random.split(jax.random.key(0), 3)
    params = policy.init(params_key)
    obs = jax.random.uniform(obs_key, (4, 6, *policy.obs_shape))
    weight = jax.random.normal(weight_key, (4, 6, 6))

    def loss(params):
        distribution, value = policy.unroll(params, policy.initial_carry(6), obs, jnp.zeros((4, 6), bool))
        assert isinstance(distribution, Categorical)
        return (distribution.logits * weight).sum() + (value**2).sum()

    for path, gradient in jax.tree_util.tree_leaves_with_path(jax.grad(loss)(params)):
        assert (jnp.abs(gradient) > 0).any(), jax.tree_util.keystr(path)


def test_a_policy_of_one_kitchen_plays_in_another_as_it_was_trained(tmp_path):
    """What never differed from 0 in its own kitchen has weights that nobody trained."""
    ring, forced = make("overcooked/coordination_ring"), make("overcooked/forced_coordination")
    policy = RecurrentPolicy.of(ring, NetworkConfig(8))
    assert policy.support != RecurrentPolicy.of(forced, NetworkConfig(8)).support
    params = jax.tree.map(lambda leaf: leaf[None], policy.init(jax.random.key(0)))
    panels.save(Panel.learned(policy, params, ["ringer"]), tmp_path / "kept")
    again = panels.load(tmp_path / "kept", forced)
    assert again.policies == (policy,)
    outcome = evaluate(forced, again, Panel.scripted(forced, ["stay"]), episodes=2)
    assert outcome.team_return.shape == (1, 1, 2, 2)


def test_what_is_always_zero_can_be_left_out():
    some = RecurrentPolicy.of(KITCHEN, NetworkConfig(8))
    whole = dataclasses.replace(some, support=None)
    assert some.support is not None
    assert len(some.support) < 520
    params_key, obs_key = jax.random.split(jax.random.key(0))
    params = some.init(params_key)
    chex.assert_trees_all_equal(params, whole.init(jax.random.clone(params_key)))
    obs = jax.vmap(KITCHEN.observation_space().sample)(jax.random.split(obs_key, 6)).reshape(3, 2, 5, 4, 26)

    def value_and_gradient(policy):
        def total(params):
            distribution, value = policy.unroll(params, policy.initial_carry(2), obs, jnp.zeros((3, 2), bool))
            return (distribution.entropy() + value**2).mean()

        return jax.value_and_grad(total)(params)

    chex.assert_trees_all_close(value_and_gradient(some), value_and_gradient(whole), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("memory", ["gru", "none"])
def test_one_step_and_the_unrolled_sequence_agree_on_grids(memory):
    policy = RecurrentPolicy.of(KITCHEN, NetworkConfig(8, "conv", memory))
    params = policy.init(jax.random.key(0))
    obs = jax.random.uniform(jax.random.key(1), (3, 2, *policy.obs_shape))
    reset = jnp.zeros((3, 2), bool)
    _, unrolled = policy.unroll(params, policy.initial_carry(2), obs, reset)
    carry, values = policy.initial_carry(2), []
    for time in range(3):
        carry, act = policy.step(params, carry, obs[time], reset[time], jax.random.key(2 + time))
        values.append(act.value)
    np.testing.assert_allclose(jnp.stack(values), unrolled, atol=1e-5)


def test_an_encoder_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="needs observations"):
        RecurrentPolicy.of(make("overcooked/cramped_room?observation=vector"), NetworkConfig(8, encoder="conv"))
    with pytest.raises(ValueError, match="must be one of dense, conv"):
        NetworkConfig(8, encoder="cnn")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="memory = 'lstm': must be one of gru, none"):
        NetworkConfig(8, memory="lstm")  # pyright: ignore[reportArgumentType]
