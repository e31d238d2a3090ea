"""Overcooked beyond equality with the reference: rewards, seats, starts, several layouts, more players."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from overcooked_reference import Reference
from scipy import stats

from jaxscope.envs import _overcooked_features, _overcooked_grid
from jaxscope.envs import _overcooked_objects as objects
from jaxscope.envs._overcooked_dynamics import step
from jaxscope.envs._overcooked_events import events
from jaxscope.envs._overcooked_kitchen import FLOOR
from jaxscope.envs._overcooked_tables import Here, tables
from jaxscope.envs.overcooked import (
    EAST,
    INTERACT,
    NORTH,
    REFERENCE_EVENTS,
    SOUTH,
    STAY,
    WEST,
    Overcooked,
    State,
    parse,
)

# Starts as random as this bring about soups within few steps of random play.
BUSY = "cramped_room?random_start_pos=true&rnd_obj_prob_thresh=0.9&cook_time=5&horizon=50"


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    return stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue


def first_states(env: Overcooked, number: int, seed: int = 0) -> State:
    reset = jax.jit(jax.vmap(lambda key: env.reset(key)[1]))
    return jax.device_get(reset(jax.random.split(jax.random.key(seed), number)))


@functools.cache
def played(env: Overcooked, num_envs: int = 512, seed: int = 0):
    """States before, actions, and results of whole episodes of random play: leaves `[T, B, ...]`, NumPy's."""
    rng = np.random.default_rng(seed)
    # More interaction than uniform actions have.
    actions = rng.choice(6, p=[0.13, 0.13, 0.13, 0.13, 0.06, 0.42], size=(env.horizon, num_envs, env.num_agents))

    @jax.jit
    def run(state, actions):
        def body(state, action):
            named = {agent: action[:, i] for i, agent in enumerate(env.agents)}
            obs, after, rewards, dones, info = jax.vmap(lambda s, a: env.step_env(jax.random.key(0), s, a))(
                state, named
            )
            return after, (state, action, obs, after, rewards, dones, info)

        return jax.lax.scan(body, state, actions)[1]

    return jax.device_get(run(first_states(env, num_envs, seed), jnp.asarray(actions, jnp.int32)))


def test_the_team_is_paid_for_what_it_did():
    """20 a valid delivery, 3 an ingredient potted, 3 a useful dish, 5 a soup taken from a pot, and nothing else."""
    env = parse(BUSY)
    _, _, _, _, rewards, _, info = played(env)
    happened = {name: count.sum() for name, count in info["events"].items()}
    team = env.team_reward(rewards).sum()
    potted = happened["potting_onion"] + happened["potting_tomato"]
    parts = [
        20 * happened["valid_delivery"],
        3 * potted,
        3 * happened["useful_dish_pickup"],
        5 * happened["soup_from_pot"],
    ]
    assert all(part > 0 for part in parts)
    assert happened["invalid_delivery"] > 0
    assert team == sum(parts)
    assert info["sparse"].sum() == parts[0]
    assert happened["soup_delivery"] == happened["valid_delivery"] + happened["invalid_delivery"]
    per_seat = {name: count.sum((0, 1)) for name, count in info["events"].items()}
    for seat, agent in enumerate(env.agents):
        own = [
            20 * per_seat["valid_delivery"][seat],
            3 * (per_seat["potting_onion"] + per_seat["potting_tomato"])[seat],
            3 * per_seat["useful_dish_pickup"][seat],
            5 * per_seat["soup_from_pot"][seat],
        ]
        assert rewards[agent].sum() == sum(own)


def test_the_factor_weighs_shaping_and_nothing_else():
    env = parse(f"{BUSY}&reward_shaping_factor=0.25")
    state, action, _, _, whole, _, info = played(parse(BUSY))

    @jax.jit
    @jax.vmap
    def pay(state, action):
        _, _, rewards, _, info = env.step_env(jax.random.key(0), state, {"agent_0": action[0], "agent_1": action[1]})
        return rewards, info["sparse"], info["shaped"], info["shaping"], env.team_shaping(info)

    rewards, sparse, shaped, shaping, team_shaping = pay(*jax.tree.map(np.concatenate, (state, action)))
    np.testing.assert_array_equal(sparse, np.concatenate(info["sparse"]))
    np.testing.assert_array_equal(shaped, np.concatenate(info["shaped"]))
    np.testing.assert_array_equal(shaping, 0.25 * shaped)
    np.testing.assert_array_equal(team_shaping, shaping.sum(-1))
    for seat, agent in enumerate(env.agents):
        np.testing.assert_array_equal(rewards[agent], (sparse + shaping)[:, seat])
        np.testing.assert_array_equal(np.concatenate(whole[agent]), (sparse + shaped)[:, seat])


def test_swapping_seats_and_actions_swaps_all_that_belongs_to_seats():
    """Exactly so wherever not both interact at once; then the first has the right of way, as in the reference."""
    env = parse(BUSY)
    state, action, obs, after, rewards, _, info = played(env)
    apart = ((action == INTERACT).sum(-1) < 2).reshape(-1)
    flat = lambda tree: jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[apart], tree)  # noqa: E731
    state, action, obs, after, rewards, info = (flat(x) for x in (state, action, obs, after, rewards, info))
    mirror = lambda s: s._replace(cell=s.cell[:, ::-1], orientation=s.orientation[:, ::-1], held=s.held[:, ::-1])  # noqa: E731

    @jax.jit
    @jax.vmap
    def swapped(state, action):
        return env.step_env(jax.random.key(0), state, {"agent_0": action[1], "agent_1": action[0]})

    other = swapped(mirror(state), action)
    jax.tree.map(np.testing.assert_array_equal, mirror(after), other[1])
    for a, b in (("agent_0", "agent_1"), ("agent_1", "agent_0")):
        np.testing.assert_array_equal(obs[a], other[0][b])
        np.testing.assert_array_equal(rewards[a], other[2][b])
    for name, count in info["events"].items():
        np.testing.assert_array_equal(count, other[4]["events"][name][:, ::-1], err_msg=name)
    assert {name for name, count in info["events"].items() if count.any()} >= {"valid_delivery", "pot_start", "idle"}


def test_a_soup_by_hand():
    """Every stage of one soup, step by step, with its rewards and events."""
    env = parse("XPX|O1X|S_D|XXX?cook_time=2&start_all_orders=o")
    take = jax.jit(lambda state, action: env.step_env(jax.random.key(0), state, {"agent_0": action})[1:])
    _, state = env.reset(jax.random.key(0))
    script = [
        (WEST, 0.0, "blocked"),  # turns towards the onions
        (INTERACT, 0.0, "onion_pickup"),
        (NORTH, 0.0, None),
        (INTERACT, 3.0, "potting_onion"),
        (INTERACT, 0.0, "pot_start"),
        (SOUTH, 0.0, None),
        (EAST, 0.0, None),
        (INTERACT, 0.0, "useless_dish_pickup"),  # for want of a second player, no dish counts as useful
        (NORTH, 0.0, None),
        (NORTH, 0.0, None),
        (INTERACT, 5.0, "soup_from_pot"),
        (STAY, 0.0, "idle"),
        (SOUTH, 0.0, None),
        (WEST, 0.0, None),
        (INTERACT, 20.0, "valid_delivery"),
        (INTERACT, 0.0, "useless_interact"),
    ]
    for action, paid, event in script:
        state, rewards, _, info = take(state, jnp.int32(action))
        assert rewards["agent_0"] == paid
        if event in info["events"]:
            assert info["events"][event].tolist() == [1]
    assert state.held.tolist() == [0]
    assert not state.contents.any()


def test_random_starts_are_uniform_over_ordered_distinct_cells():
    env = parse("forced_coordination?random_start_pos=true")
    states = first_states(env, 20_000)
    free = [x * env.height + y for x, y in env.kitchen.tiles(FLOOR)]
    pairs = [(a, b) for a in free for b in free if a != b]
    counts = np.array([np.all(np.asarray(states.cell) == pair, axis=1).sum() for pair in pairs])
    assert counts.sum() == len(states.cell)
    assert chi_square(counts, np.ones(len(pairs))) > 1e-4
    assert (states.orientation == NORTH).all()
    assert not states.held.any()
    assert not states.contents.any()


def test_four_players_start_on_distinct_cells():
    env = parse("multiplayer_schelling?random_start_pos=true")
    cells = np.sort(first_states(env, 5_000).cell, 1)
    assert (np.diff(cells, axis=1) > 0).all()
    free = np.sort([x * env.height + y for x, y in env.kitchen.tiles(FLOOR)])
    counts = (cells[:, :, None] == free).sum((0, 1))
    assert counts.sum() == cells.size
    assert chi_square(counts, np.ones(len(free))) > 1e-4


def test_random_hands_and_pots_have_the_references_distribution():
    prob = 0.7
    env = parse(f"coordination_ring?rnd_obj_prob_thresh={prob}&cook_time=9")
    states = first_states(env, 20_000)
    soups = [(n, m) for n in (1, 2, 3) for m in range(4 - n)]
    soup_chance = [1 / 3 / (4 - n) for n, _ in soups]
    hands = [0, objects.DISH, objects.ONION, *(objects.soup(n, m) for n, m in soups)]
    chance = np.array([1 - prob, prob * 0.2, prob * 0.6, *(prob * 0.2 * p for p in soup_chance)])
    for seat in range(2):
        counts = np.array([(states.held[:, seat] == thing).sum() for thing in hands])
        assert counts.sum() == len(states.held)
        assert chi_square(counts, chance) > 1e-4
    contents = [0, *(objects.idle(n, m) for n, m in soups), *(objects.soup(n, m, 9) for n, m in soups)]
    idle, started = prob * (1 - prob), prob * prob
    chance = np.array([1 - prob, *(idle * p for p in soup_chance), *(started * p for p in soup_chance)])
    pots = [x * env.height + y for x, y in env.kitchen.tiles(4)]
    for pot in pots:
        counts = np.array([(states.contents[:, pot] == thing).sum() for thing in contents])
        assert counts.sum() == len(states.contents)
        assert chi_square(counts, chance) > 1e-4
    assert not np.delete(states.contents, pots, axis=1).any()
    # The players stay at their starts, and what befalls one says nothing about another.
    assert (states.cell == states.cell[0]).all()
    holds, filled = states.held[:, 0] > 0, states.contents[:, pots[0]] > 0
    together = np.array([(holds == a) & (filled == b) for a in (False, True) for b in (False, True)]).sum(1)
    chance = np.outer([1 - prob, prob], [1 - prob, prob]).reshape(-1)
    assert chi_square(together, chance) > 1e-4


def test_without_randomness_every_start_is_the_layouts():
    states = first_states(parse("tutorial_1"), 3)
    assert all((leaf == leaf[0]).all() for leaf in states)
    assert states.orientation[0].tolist() == [WEST, NORTH]
    assert states.contents.any()


def test_several_layouts_play_in_one_compiled_function_as_each_does_alone():
    names = ("coordination_ring", "five_by_five")
    both = parse(f"{'+'.join(names)}?horizon=30&rnd_obj_prob_thresh=0.5")
    state, action, obs, after, rewards, _, info = played(both)
    drawn = state.layout[0]
    assert (state.layout == drawn).all()
    assert chi_square(np.bincount(drawn), np.ones(2)) > 1e-4
    vectors = jax.jit(jax.vmap(dataclasses.replace(both, observation="vector").get_obs))
    for number, name in enumerate(names):
        alone = dataclasses.replace(both, layout=name)

        def rows(tree, here=drawn == number):
            return jax.tree.map(lambda leaf: np.concatenate(leaf[:, here]), tree)

        def take(state, action, alone=alone):
            actions = {agent: action[i] for i, agent in enumerate(alone.agents)}
            obs, after, rewards, _, info = alone.step_env(jax.random.key(0), state, actions)
            return obs, after, rewards, info["events"], dataclasses.replace(alone, observation="vector").get_obs(after)

        first_of_all = rows(state)._replace(layout=np.zeros(len(rows(state).time), np.int32))
        expected = jax.device_get(jax.jit(jax.vmap(take))(first_of_all, rows(action)))
        ours = (rows(obs), rows(after)._replace(layout=expected[1].layout), rows(rewards), rows(info["events"]))
        jax.tree.map(np.testing.assert_array_equal, ours, expected[:4])
        jax.tree.map(np.testing.assert_array_equal, jax.device_get(vectors(rows(after))), expected[4])


def test_layers_for_four_players():
    """The reference has no more than two; the scheme goes on: own, then the others in seat order."""
    env = parse("multiplayer_schelling?rnd_obj_prob_thresh=1.0&random_start_pos=true&horizon=20")
    _, _, obs, after, _, _, _ = played(env, 32)
    cells = np.arange(env.width * env.height)
    for seat, agent in enumerate(env.agents):
        grid = obs[agent].reshape(*obs[agent].shape[:2], len(cells), -1).astype(int)
        assert grid.shape[-1] == 36
        for turn, player in enumerate([seat, *(other for other in range(4) if other != seat)]):
            at = after.cell[..., player, None] == cells
            np.testing.assert_array_equal(grid[..., turn], at)
            facing = np.arange(4) == after.orientation[..., player, None]
            layers = grid[..., 4 + 4 * turn : 8 + 4 * turn]
            np.testing.assert_array_equal(layers, at[..., :, None] & facing[..., None, :])
        for layer, tile in zip(range(20, 26), "PXOTDS", strict=True):
            kind = np.array([env.kitchen.kind(cell) == " XOTPDS".index(tile) for cell in env.kitchen.cells()])
            assert (grid[..., layer] == kind).all()
        held = [(after.held == thing).sum(-1) for thing in (objects.DISH, objects.ONION, objects.TOMATO)]
        lying = [(after.contents == thing).sum(-1) for thing in (objects.DISH, objects.ONION, objects.TOMATO)]
        for layer, here, there in zip((32, 33, 34), held, lying, strict=True):
            np.testing.assert_array_equal(grid[..., layer].sum(-1), here + there)
        assert (grid[..., 35] == 1).all()  # the horizon is near from the start
        np.testing.assert_array_equal(grid[..., 28].sum(-1) > 0, _started(after, 7))


def _started(state: State, mask: int) -> np.ndarray:
    """Whether there is a started soup with onions anywhere."""
    soups = np.concatenate([state.contents, state.held], -1)
    return np.any((objects.started_recipe(soups) & mask) > 0, axis=-1)


@pytest.mark.parametrize("settings", ["", "&observation=vector", "&cook_time=300", "&cook_time=300&observation=vector"])
def test_observations_lie_in_their_space(settings):
    env = parse(BUSY.replace("&cook_time=5", "") + settings)
    states = jax.tree.map(np.concatenate, played(parse(BUSY))[3])
    if env.cook_time:
        waiting = objects.waiting_recipe(states.contents)
        states = states._replace(contents=np.where(waiting > 0, objects.soup(1, 0, env.cook_time), states.contents))
    obs = jax.device_get(jax.jit(jax.vmap(env.get_obs))(states))
    space = env.observation_space()
    for agent in env.agents:
        assert obs[agent].dtype == space.dtype
        assert jax.vmap(space.contains)(obs[agent]).all()
        assert not env.cook_time or obs[agent].max() == env.cook_time


# One compiled step serves all kitchens of a size, also those that are drawn up only now.
SIZE, POTS = 5, 2
ANY = Overcooked("XXPPX|O1_2O|X___X|X___X|XDTSX")


@st.composite
def drawings(draw) -> str:
    """Kitchens of 5 x 5 tiles for two players with one or two pots, all else as it comes."""
    border = [(x, y) for x in range(SIZE) for y in range(SIZE) if x in (0, SIZE - 1) or y in (0, SIZE - 1)]
    inner = [(x, y) for x in range(1, SIZE - 1) for y in range(1, SIZE - 1)]
    tiles = {cell: draw(st.sampled_from("XXOTDS")) for cell in border}
    tiles |= {cell: draw(st.sampled_from("      XOTDS")) for cell in inner}
    for cell, digit in zip(draw(st.permutations(inner))[:2], "12", strict=True):
        tiles[cell] = digit
    sides = [cell for cell in border if (cell[0] in (0, SIZE - 1)) != (cell[1] in (0, SIZE - 1))]
    places = draw(st.permutations(sides))
    for cell, tile in zip(places, "DSOPP" if draw(st.booleans()) else "DSTP", strict=False):
        tiles[cell] = tile
    return "|".join("".join(tiles[x, y] for x in range(SIZE)) for y in range(SIZE))


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, 0))
def step_anywhere(arrays, state, action):
    here = Here(arrays, state.layout)
    done = step(ANY, here, state, action)
    grid = _overcooked_grid.layers(ANY, here, done.state)
    vector = _overcooked_features.features(ANY, here, done.state)
    return done.state, grid, vector, events(ANY, here, action, done)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    drawing=drawings(),
    actions=st.lists(
        st.tuples(*[st.sampled_from([NORTH, SOUTH, EAST, WEST, STAY, INTERACT, INTERACT])] * 2),
        min_size=60,
        max_size=60,
    ),
    randomness=st.sampled_from([0.0, 0.9]),
    seed=st.integers(0, 1000),
)
@pytest.mark.filterwarnings("ignore:layout ")
def test_any_kitchen_and_any_actions(drawing, actions, randomness, seed):
    env = Overcooked(drawing, rnd_obj_prob_thresh=randomness, horizon=len(actions))
    script = iter(actions)
    game = Reference(env)
    rows = list(game.play(lambda *_: list(next(script)), 1, np.random.default_rng(seed)))
    states, action, after, _, _, expected_events, grid, vector = zip(*rows, strict=True)
    stack = lambda states: State._make(np.stack(leaf) for leaf in zip(*states, strict=True))  # noqa: E731
    arrays = tables(env)
    missing = POTS - arrays.pot_cell.shape[1]
    pad = lambda leaf: np.pad(leaf, [(0, 0)] * (leaf.ndim - 1) + [(0, missing)], constant_values=-1)  # noqa: E731
    arrays = arrays._replace(pot_cell=pad(arrays.pot_cell), pot_order=pad(arrays.pot_order))
    state, our_grid, our_vector, happened = step_anywhere(arrays, stack(states), np.stack(action))
    jax.tree.map(np.testing.assert_array_equal, state, stack(after))
    # The one step has a horizon of 400.
    np.testing.assert_array_equal(our_grid[..., :25], np.stack(grid)[..., :25])
    np.testing.assert_array_equal(our_vector, np.stack(vector))
    shown = np.stack(grid).reshape(-1, math.prod(env.observation_space().shape)).any(0)
    assert set(np.flatnonzero(shown)) <= set(env.observation_space().support or ())
    for name in REFERENCE_EVENTS:
        np.testing.assert_array_equal(happened[name], np.stack([row[name] for row in expected_events]))
