"""Scripted partners that move freely: the contract of every file of both games."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from point_mass_partner_games import FAMILIES, NAMES, QUICK_COMPILE, act_all, first_memories, play
from test_pmr import state_of as agents_at
from test_predator_prey import drawn
from test_predator_prey import state_of as hunters_at

import jaxscope
from jaxscope.agents.scripted import ROLES, description, partner, partner_names, role
from jaxscope.agents.scripted_group import grouped
from jaxscope.types import View

HELD_OUT = {
    "pmr": ["closest-landmark", "farthest-landmark", "regroup-then-diverge", "teammate-biased"],
    "predator_prey": ["closest-prey", "rabbit-only", "stag-only", "teammate-biased"],
}
EVERY = [(family, name) for family in FAMILIES for name in NAMES[family]]
BATCH = 300


@functools.cache
def scattered(family) -> tuple[Any, ...]:
    """Random states `[B]`, as arrays for `made`."""
    rng = np.random.default_rng(0)
    if family == "pmr":
        return rng.uniform(-1.2, 1.2, (BATCH, 2, 2)), rng.uniform(-1, 1, (BATCH, 2, 2))
    states = [drawn(seed) for seed in range(BATCH)]
    return tuple(np.stack(leaf) for leaf in zip(*states, strict=True))


def made(family, arrays, order=(0, 1)):
    """States from arrays, the agents in the given order."""
    rows = [*order, *range(2, arrays[0].shape[1])]
    moving = [leaf[:, rows] for leaf in arrays[:2]]
    return agents_at(*moving) if family == "pmr" else hunters_at(*moving, *arrays[2:])


@functools.partial(jax.jit, static_argnums=(0,), compiler_options=QUICK_COMPILE)
def first_two(env, states, seat):
    """Every partner's first two thrusts and its memory after them, in states that do not change."""

    def one(state, key):
        memories, told = first_memories(env), []
        for time in range(2):
            thrusts, memories = act_all(env, memories, state, seat, jax.random.fold_in(key, time))
            told.append(thrusts)
        return jnp.stack(told), memories

    return jax.vmap(one)(states, jax.random.split(jax.random.key(1), BATCH))


@pytest.mark.parametrize("family", FAMILIES)
def test_roles_are_as_published(family):
    assert partner_names(family, "held-out") == HELD_OUT[family]
    assert partner_names(family, "bound") == ["random", "stay"]
    assert len(partner_names(family, "training")) >= 10


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_file_says_what_it_is(family, name):
    assert role(name, family) in ROLES
    line = description(name, family)
    assert line.endswith(".")
    assert 20 < len(line) < 120


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_action_and_memory_keep_their_types(family, name):
    env = jaxscope.make(family)
    policy = partner(name, env)
    key = jax.random.key(0)
    action, after = jax.eval_shape(
        lambda memory, state, key: policy.act((), memory, View(jnp.zeros(()), state, jnp.int32(0)), key),
        policy.initial_memory(()),
        jax.eval_shape(env.reset, key)[1],
        key,
    )
    assert (action.shape, action.dtype, action.weak_type) == ((2,), jnp.float32, False)
    memory = jax.tree.map(jax.typeof, policy.initial_memory(()))
    kinds = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree) for tree in (memory, after)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_acts_alike_in_either_seat_and_within_the_action_space(family):
    env, arrays = jaxscope.make(family), scattered(family)
    ours = first_two(env, made(family, arrays), jnp.int32(0))
    jax.tree.map(np.testing.assert_array_equal, ours, first_two(env, made(family, arrays, (1, 0)), jnp.int32(1)))
    thrusts = np.asarray(ours[0])
    assert np.isfinite(thrusts).all()
    assert np.abs(thrusts).max() <= 1 + 1e-6  # rounding of a length; the environment clips


def test_hunters_act_on_no_more_than_their_sight():
    """What is out of sight or caught is moved elsewhere and changes its kind: nothing may follow from that."""
    env = jaxscope.make("predator_prey?sight=0.6")
    position, velocity, stag, alive = scattered("predator_prey")
    ours = first_two(env, hunters_at(position, velocity, stag, alive), jnp.int32(0))
    hidden = np.linalg.norm(position - position[:, :1], axis=-1) >= 0.6
    hidden[:, 2:] |= np.logical_not(alive)
    assert 0.3 < hidden[:, 1:].mean() < 0.9
    position, velocity = np.where(hidden[..., None], (5.0, -7.0), position), np.where(hidden[..., None], 0.3, velocity)
    changed = hunters_at(position, velocity, stag != hidden[:, 2:], alive, 3)
    jax.tree.map(np.testing.assert_array_equal, ours, first_two(env, changed, jnp.int32(0)))


def disagreement(family, a, b, games):
    """In how many of the steps two partners would act clearly differently, given the same randomness."""
    choices = games.choices[:, :, 0][games.running]
    apart = choices[:, NAMES[family].index(a)] - choices[:, NAMES[family].index(b)]
    return (np.linalg.norm(apart, axis=-1) > 0.2).mean()


@pytest.mark.parametrize("family", FAMILIES)
def test_partners_differ_from_each_other(family):
    """In more than a tenth of the steps of games that one of the two plays."""
    for a, b in itertools.combinations(NAMES[family], 2):
        assert np.mean([disagreement(family, a, b, play(family, name)) for name in (a, b)]) > 0.1, (a, b)


@pytest.mark.parametrize("family", FAMILIES)
def test_partners_that_play_together_act_as_by_themselves(family):
    """Thrusts are arrays; a group keeps each partner's own, for two steps."""
    env, states = jaxscope.make(family), made(family, scattered(family))
    members = [partner(name, env) for name in NAMES[family]]
    policy, params = grouped(members)
    alone = first_two(env, states, jnp.int32(1))[0]  # [B, 2, S, 2]

    def together(index, state, key):
        memory, told = policy.initial_memory(index), []
        for time in range(2):
            view = View(jnp.zeros(()), state, jnp.int32(1))
            thrust, memory = policy.act(index, memory, view, jax.random.fold_in(key, time))
            told.append(thrust)
        return jnp.stack(told)

    member = jnp.arange(BATCH) % len(members)
    keys = jax.random.split(jax.random.key(1), BATCH)
    ours = jax.jit(jax.vmap(together), compiler_options=QUICK_COMPILE)(params[member], states, keys)
    reference = np.asarray(alone)[np.arange(BATCH), :, np.asarray(member)]
    np.testing.assert_allclose(ours, reference, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_thrusts_are_uniform(family):
    thrusts = play(family, "random", "stay").actions[:, :, 0].reshape(-1, 2)
    np.testing.assert_allclose(thrusts.mean(0), 0, atol=0.1)
    np.testing.assert_allclose(thrusts.std(0), 1 / np.sqrt(3), atol=0.05)
    assert (play(family, "stay", "random").actions[:, :, 0] == 0).all()
