"""Overcooked against overcooked_ai: every state, reward, event and observation, at every step."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter

import jax
import numpy as np
import pytest
from overcooked_reference import Record, record

from jaxscope.envs.overcooked import OUR_EVENTS, REFERENCE_EVENTS, Overcooked, State, parse

# Small kitchens, where players meet at one tile often. Every setting that changes a step is off its default somewhere.
GAMES = (
    "cramped_room",
    "cramped_room?old_dynamics=true&cook_time=3",
    "coordination_ring?rnd_obj_prob_thresh=0.8&random_start_pos=true",
    "forced_coordination_tomato?rnd_obj_prob_thresh=0.5&horizon=60",
    "counter_circuit",
    "cramped_room_tomato?start_all_orders=ttt,tt&start_bonus_orders=tt&order_bonus=3&placement_in_pot_reward=1.5&dish_pickup_reward=2",
    "tutorial_1",
    "asymmetric_advantages?start_all_orders=oo,tt,ot,ooo&recipe_values=1,2,3,4&recipe_times=1,2,3,4",
    "schelling_s?max_num_ingredients=4&start_all_orders=oooo,oo&num_pots=3",
    "XTXXX|P1_2P|XDOSX?old_dynamics=true&rnd_obj_prob_thresh=1.0&soup_pickup_reward=7",
    "multiplayer_schelling",
    "cramped_room_single?max_num_ingredients=2&start_all_orders=oo",
)
EPISODES_PER_GAME = 5
EPISODES_PER_GAME_SLOW = 100


@functools.cache
def compiled(env: Overcooked):
    """One step of many games, and both observations after it."""
    vector = dataclasses.replace(env, observation="vector")

    def one(state, action):
        actions = {agent: action[i] for i, agent in enumerate(env.agents)}
        obs, after, rewards, dones, info = env.step_env(jax.random.key(0), state, actions)
        return obs, after, rewards, dones, info, vector.get_obs(after)

    return jax.jit(jax.vmap(one))


def assert_equal_everywhere(env: Overcooked, expected: Record) -> Counter[str]:
    """Compare transition by transition; returns how often each event happened.

    Each transition starts from the reference's state, and as each ends in it, whole episodes are equal too.
    """
    obs, state, rewards, dones, info, features = jax.device_get(compiled(env)(expected.state, expected.action))
    for name, ours, theirs in zip(State._fields, state, expected.next_state, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    np.testing.assert_array_equal(info["sparse"], expected.sparse)
    np.testing.assert_array_equal(info["shaped"], expected.shaped)
    for name in REFERENCE_EVENTS:
        np.testing.assert_array_equal(info["events"][name], expected.events[name], err_msg=name)
    for i, agent in enumerate(env.agents):
        np.testing.assert_array_equal(rewards[agent], (expected.sparse + expected.shaped)[:, i])
        np.testing.assert_array_equal(dones[agent], expected.next_state.time == env.horizon)
        if expected.grid.size:
            np.testing.assert_array_equal(obs[agent], expected.grid[:, i])
        if expected.vector.size:
            np.testing.assert_array_equal(features[agent], expected.vector[:, i])
    np.testing.assert_array_equal(info["truncated"], expected.next_state.time == env.horizon)
    assert not info["terminated"].any()
    return Counter({name: int(count.sum()) for name, count in info["events"].items()})


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    """The events of all games of this file."""
    return Counter()


@pytest.mark.parametrize("name", GAMES)
def test_equals_the_reference(name: str, seen: Counter[str]) -> None:
    env = parse(name)
    expected = record(env, EPISODES_PER_GAME, seed=GAMES.index(name))
    assert (expected.next_state.time == env.horizon).sum() == EPISODES_PER_GAME
    assert bool(expected.grid.size) == (env.num_agents == 2)
    assert bool(expected.vector.size) == (env.num_agents > 1 and not env.old_dynamics)
    seen.update(assert_equal_everywhere(env, expected))


def test_everything_happened(seen: Counter[str]) -> None:
    if not seen:  # this test was run alone
        for name in GAMES:
            env = parse(name)
            seen.update(assert_equal_everywhere(env, record(env, EPISODES_PER_GAME, seed=GAMES.index(name))))
    rare = {name: seen[name] for name in (*REFERENCE_EVENTS, *OUR_EVENTS) if seen[name] < 5}
    assert not rare, f"too rare to test anything: {rare} of {dict(seen)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_equals_the_reference_for_long(name: str) -> None:
    env = parse(name)
    for part in range(EPISODES_PER_GAME_SLOW // 20):
        assert_equal_everywhere(env, record(env, 20, seed=1000 + part))
