"""What every environment promises, whatever its game; a new file in `envs/` is tested by being there."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxscope
from jaxscope import registry
from jaxscope.make import ENVIRONMENTS

FAMILIES = registry.names(ENVIRONMENTS)
NAMES = [*jaxscope.list_envs(), "discrete:pmr", "discrete:predator_prey?sight=inf"]
#: One of each family for what must be compiled, and one within another.
ONE_EACH = [registry.load(ENVIRONMENTS, family).EXAMPLES[-1] for family in FAMILIES] + ["discrete:pmr?horizon=30"]


def random_actions(env, key):
    keys = jax.random.split(key, env.num_agents)
    return {agent: env.action_space(agent).sample(k) for agent, k in zip(env.agents, keys, strict=True)}


def fields(tree):
    """Shapes and types."""
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_examples(family):
    examples = registry.load(ENVIRONMENTS, family).EXAMPLES
    assert examples
    assert all(re.split("[/?]", example)[0] == family for example in examples)
    try:
        default = registry.load(ENVIRONMENTS, family).parse("")
    except ValueError:
        with pytest.raises(ValueError, match=f"'{family}' needs a variant, for example '{examples[0]}'"):
            jaxscope.make(family)
    else:
        assert jaxscope.make(family) == default
    with pytest.raises(ValueError, match="nonsense"):
        jaxscope.make(f"{family}/nonsense")
    with pytest.raises(ValueError, match="has no option 'nonsense'"):
        jaxscope.make(examples[0], nonsense=1)


@pytest.mark.parametrize("name", NAMES)
def test_names_and_settings(name):
    env = jaxscope.make(name)
    assert env.name == name
    assert env == jaxscope.make(name)
    assert hash(env) == hash(jaxscope.make(name))
    assert env.agents == tuple(f"agent_{seat}" for seat in range(env.num_agents))
    assert env.horizon >= 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        env.num_agents = 7


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_types(name):
    env = jaxscope.make(name)
    key = jax.random.key(0)
    obs, state = jax.eval_shape(env.reset, key)
    assert tuple(obs) == env.agents
    for agent in env.agents:
        assert fields(obs[agent]) == (env.observation_space(agent).shape, env.observation_space(agent).dtype)
    actions = jax.eval_shape(lambda: random_actions(env, jax.random.key(1)))
    for take in (env.step, env.step_env):
        after_obs, after, rewards, dones, info = jax.eval_shape(take, key, state, actions)
        assert fields(after_obs) == fields(info["final_observation"]) == fields(obs)
        assert jax.tree.structure(after) == jax.tree.structure(state)
        assert fields(after) == fields(state)
        assert set(rewards) == set(env.agents)
        assert all(reward.shape == () and reward.dtype == jnp.float32 for reward in rewards.values())
        assert set(dones) == {*env.agents, "__all__"}
        flags = [*dones.values(), info["terminated"], info["truncated"]]
        assert all(flag.shape == () and flag.dtype == bool for flag in flags)
        assert info["events"]
        for count in info["events"].values():
            assert count.shape == (env.num_agents,)
            assert jnp.issubdtype(count.dtype, jnp.floating) or jnp.issubdtype(count.dtype, jnp.integer)
    assert fields(jax.eval_shape(env.get_obs, state)) == fields(obs)


@pytest.mark.parametrize("name", ONE_EACH)
def test_random_play_keeps_the_promises(name):
    """Two time limits of random play, every step beside the same step without auto-reset."""
    env = jaxscope.make(name)

    traces = []

    def step(carry, key):
        obs, state, time = carry
        act_key, env_key = jax.random.split(key)
        actions = random_actions(env, act_key)
        result = env.step(env_key, state, actions)
        step_key, reset_key = jax.random.split(jax.random.clone(env_key))
        plain = env.step_env(step_key, state, actions)
        valid = jnp.stack([env.observation_space(agent).contains(obs[agent]) for agent in env.agents])
        final = [env.observation_space(a).contains(result[4]["final_observation"][a]) for a in env.agents]
        done = result[3]["__all__"]
        told = {
            "valid": valid.all() & jnp.stack(final).all(),
            "time": time + 1,
            "result": result,
            "plain": plain,
            "by_seat": env.by_seat(plain[0], plain[1]),
            "fresh": env.reset(reset_key),
        }
        return (result[0], result[1], jnp.where(done, 0, time + 1)), told

    def play(key):
        traces.append(key)
        reset_key, steps_key = jax.random.split(key)
        obs, state = env.reset(reset_key)
        keys = jax.random.split(steps_key, 2 * env.horizon)
        return jax.lax.scan(step, (obs, state, jnp.zeros((), jnp.int32)), keys)[1]

    play = jax.jit(play)
    told = jax.device_get(play(jax.random.key(3)))
    assert told["valid"].all()
    obs, state, rewards, dones, info = told["result"]
    plain_obs, plain_state, plain_rewards, plain_dones, plain_info = told["plain"]
    done = dones["__all__"]
    assert done.sum() >= 2
    assert (told["time"] <= env.horizon).all()

    np.testing.assert_array_equal(done, info["terminated"] | info["truncated"])
    assert not (info["terminated"] & info["truncated"]).any()
    assert (told["time"][info["truncated"]] == env.horizon).all()
    for agent in env.agents:
        np.testing.assert_array_equal(dones[agent], done)
    same = lambda a, b: jax.tree.map(np.testing.assert_array_equal, a, b)  # noqa: E731
    same((rewards, dones, info), (plain_rewards, plain_dones, plain_info))
    same(info["final_observation"], plain_obs)
    same(told["by_seat"], np.stack([plain_obs[agent] for agent in env.agents], axis=1))
    rows = lambda tree, which: jax.tree.map(lambda leaf: leaf[which], tree)  # noqa: E731
    same(rows((obs, state), ~done), rows((plain_obs, plain_state), ~done))
    same(rows((obs, state), done), rows(told["fresh"], done))

    same(jax.device_get(play(jax.random.key(3))), told)  # the same key, the same games
    assert len(traces) == 1


@pytest.mark.parametrize("name", ONE_EACH)
def test_a_given_state_is_restarted_from(name):
    env = jaxscope.make(name)
    first_key, other_key, act_key, env_key = jax.random.split(jax.random.key(5), 4)
    _, state = env.reset(first_key)
    _, start = env.reset(other_key)
    actions = random_actions(env, act_key)
    traces = []

    @jax.jit
    def step(key, state):
        traces.append(key)
        return env.step(key, state, actions, start)

    for key in jax.random.split(env_key, env.horizon):
        obs, state, _, dones, _ = step(key, state)
        if dones["__all__"]:
            break
    assert dones["__all__"]
    jax.tree.map(np.testing.assert_array_equal, state, start)
    jax.tree.map(np.testing.assert_array_equal, obs, env.get_obs(start))
    assert len(traces) == 1  # states come back as they went in


@pytest.mark.parametrize("name", ONE_EACH)
def test_shaping_is_told_where_it_is_paid(name):
    env = jaxscope.make(name)
    _, state = env.reset(jax.random.key(0))
    info = env.step_env(jax.random.key(1), state, random_actions(env, jax.random.key(2)))[4]
    if env.pays_shaping:
        assert info["shaping"].shape == (env.num_agents,)
    else:
        assert not np.any(info.get("shaping", 0))


@pytest.mark.parametrize("name", ONE_EACH)
def test_team_reward(name):
    env = jaxscope.make(name)
    own = {agent: jnp.float32(seat + 1) for seat, agent in enumerate(env.agents)}
    if env.shared_reward:
        assert env.team_reward({agent: jnp.float32(0.5) for agent in env.agents}) == 0.5
    else:
        assert env.team_reward(own) == sum(range(1, env.num_agents + 1))
