"""The foraging game by itself: resets, ends, spaces, names, compilation."""

from __future__ import annotations

import dataclasses
from functools import cache, partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lbf_reference import food_cells, fresh, reference, snapshot
from scipy.stats import chi2_contingency, chisquare

from jaxscope.envs.lbf import EXAMPLES, LBF, LOAD, MOVES, NONE, NORTH, SOUTH, State, parse

GAMES = (
    LBF(sight=2),
    LBF(rows=6, cols=9, num_agents=3, num_foods=2, max_player_level=3, penalty=0.5),
    LBF(rows=7, cols=5, num_foods=2, sight=2, grid_observation=True, force_coop=True),
    LBF(rows=5, cols=5, num_agents=4, num_foods=4, sight=1, observe_agent_levels=False, normalize_reward=False),
)
few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**31 - 1)


@partial(jax.jit, static_argnums=(0, 2))
def first_states(env: LBF, key: jax.Array, count: int) -> State:
    return jax.vmap(env.reset)(jax.random.split(key, count))[1]


@cache
def resets(env: LBF, seed: int, count: int) -> State:
    """`count` first states, as NumPy."""
    return jax.tree.map(np.asarray, first_states(env, jax.random.key(seed), count))


@partial(jax.jit, static_argnums=0)
def step_env(env: LBF, state: State, actions: dict[str, Any]) -> tuple:
    """One step without reset, of one game or of a batch."""
    step = partial(env.step_env, jax.random.key(0))
    return step(state, actions) if state.time.ndim == 0 else jax.vmap(step)(state, actions)


@partial(jax.jit, static_argnums=(0, 2))
def play(env: LBF, key: jax.Array, games: int) -> tuple:
    """Random games over 60 steps: `(observations, rewards, info)` per step and the last state; time-major."""
    reset_key, play_key = jax.random.split(key)
    _, state = jax.vmap(env.reset)(jax.random.split(reset_key, games))

    def step(state: State, key: jax.Array) -> tuple:
        action_key, step_key = jax.random.split(key)
        drawn = jax.random.randint(action_key, (env.num_agents, games), 0, 6)
        actions = dict(zip(env.agents, drawn, strict=True))
        obs, state, rewards, dones, info = jax.vmap(env.step)(jax.random.split(step_key, games), state, actions)
        return state, (obs, rewards, dones, info, state)

    return jax.lax.scan(step, state, jax.random.split(play_key, 60))[1]


def act(env: LBF, *actions: int) -> dict[str, jax.Array]:
    return {agent: jnp.int32(action) for agent, action in zip(env.agents, actions, strict=True)}


def game(env: LBF, players: list, levels: list, foods: list, food_levels: list, time: int = 0) -> State:
    """A state made by hand."""
    return State(
        *(jnp.array(x, jnp.int32) for x in (players, levels, foods, food_levels, sum(food_levels), time)),
    )


# Resets


@cache
def resets_of_the_reference(env: LBF, count: int) -> list[tuple]:
    """Positions, levels, food cells and food levels of `count` resets."""
    lbforaging, found = reference(env), []
    fresh(lbforaging, seed=7)
    for _ in range(count):
        fresh(lbforaging)
        foods = food_cells(lbforaging)
        found.append(snapshot(lbforaging, foods)[:4])
    return found


def theirs_and_ours(env: LBF, describe: Any) -> tuple[np.ndarray, np.ndarray]:
    """Counts of what `describe` says of resets of the reference and of ours."""
    found = [describe(*row) for row in resets_of_the_reference(env, 3000)]
    mine = [describe(*row) for row in zip(*resets(env, 3, 20_000)[:4], strict=True)]
    index = {category: i for i, category in enumerate(sorted({*found, *mine}))}
    theirs, ours = (np.bincount([index[x] for x in counted], minlength=len(index)) for counted in (found, mine))
    return theirs, ours


def assert_same_distribution(theirs: np.ndarray, ours: np.ndarray) -> None:
    """Two-sample chi-square; categories that the reference hardly ever shows are merged."""
    assert len(ours) > 1
    rare = ours * theirs.sum() / ours.sum() < 5
    table = np.stack([[*x[~rare], x[rare].sum()] for x in (theirs, ours)])
    table = table[:, table.sum(0) > 0]
    result: Any = chi2_contingency(table)
    assert result.pvalue > 0.01


# Two foods and more of a 5 x 5 field often leave no cell for the next one; 6 x 9 is not square.
@pytest.mark.parametrize("env", [LBF(rows=6, cols=9), LBF(rows=5, cols=5, num_foods=2)], ids=lambda env: env.name)
@pytest.mark.parametrize("what", ["food cells", "player and food", "levels"])
def test_resets_are_distributed_as_those_of_the_reference(env: LBF, what: str) -> None:
    def describe(position: np.ndarray, level: np.ndarray, foods: np.ndarray, food_level: np.ndarray) -> tuple:
        if what == "food cells":
            return tuple(map(tuple, foods[:2]))
        if what == "player and food":
            return (*(foods[0] - position[1]), *(position[0] == position[1]))
        return (*level, *food_level[:2])

    assert_same_distribution(*theirs_and_ours(env, describe))


def test_players_stand_anywhere_alike() -> None:
    env = LBF(rows=5, cols=7, num_agents=3, num_foods=1)
    cells = resets(env, 0, 40_000).position @ np.array([env.cols, 1])
    for player in range(3):
        assert chisquare(np.bincount(cells[:, player], minlength=35)).pvalue > 0.01
    pairs = np.bincount(cells[:, 0] * 35 + cells[:, 1], minlength=35 * 35).reshape(35, 35)
    assert not pairs.diagonal().any()
    assert chisquare(pairs[~np.eye(35, dtype=bool)]).pvalue > 0.01


def test_every_level_occurs_alike() -> None:
    env = LBF(min_player_level=2, max_player_level=5, min_food_level=3, max_food_level=9)
    state = resets(env, 1, 30_000)
    for levels, low, high in ((state.level, 2, 5), (state.food_level, 3, 9)):
        counts = np.bincount(levels.ravel(), minlength=high + 1)
        assert counts[:low].sum() == 0
        assert len(counts) == high + 1
        assert chisquare(counts[low:]).pvalue > 0.01


def test_food_is_as_strong_as_the_three_weakest_players_at_most() -> None:
    free, coop = LBF(num_agents=4, max_player_level=4), LBF(num_agents=4, max_player_level=4, force_coop=True)
    most = np.sort(resets(free, 2, 2000).level)[:, :3].sum(1)
    food_level = resets(free, 2, 2000).food_level
    assert (food_level.max(1) <= most).all()
    assert (food_level.max(1) == most).any()
    state = resets(coop, 2, 2000)
    assert (state.food_level == np.sort(state.level)[:, :3].sum(1, keepdims=True)).all()


@few
@given(env=st.sampled_from(GAMES), seed=seeds)
def test_first_states_keep_the_rules(env: LBF, seed: int) -> None:
    state = resets(env, seed, 64)
    cells, foods, placed = state.position, state.food_position, state.food_level > 0
    assert placed[:, 0].all()
    assert (np.diff(placed.astype(int)) <= 0).all(), "absent foods come last"
    assert (foods[~placed] == -1).all()
    assert ((foods >= 1) & (foods <= np.array([env.rows, env.cols]) - 2))[placed].all()
    assert ((cells >= 0) & (cells < np.array([env.rows, env.cols]))).all()
    number = foods @ np.array([env.cols, 1])
    for i in range(env.num_foods):
        for j in range(i):
            both = placed[:, i] & placed[:, j]
            assert (np.abs(foods[:, i] - foods[:, j]).sum(1) > 2)[both].all(), "spacing"
            assert (number[:, j] < number[:, i])[both].all(), "row-major"
    assert not ((cells[:, :, None] == foods[:, None]).all(-1) & placed[:, None]).any(), "food on a player"
    assert (state.total_level == state.food_level.sum(1)).all()
    assert (state.time == 0).all()


def test_foods_that_find_no_place_are_absent() -> None:
    state = resets(LBF(rows=3, cols=5, num_foods=3), 0, 500)
    counts = (state.food_level > 0).sum(1)
    assert set(counts) == {1}
    state = resets(LBF(rows=3, cols=3, num_agents=3, num_foods=1), 0, 500)
    assert set((state.food_level > 0).sum(1)) == {0, 1}, "a player may stand on the only cell"


# Steps


def test_eating_everything_terminates_and_time_truncates() -> None:
    env = LBF(num_foods=1, max_steps=3)
    beside = ([[2, 3], [0, 0]], [2, 1], [[3, 3]], [2])
    for time, first, terminated, truncated in ((0, LOAD, 1, 0), (2, LOAD, 1, 0), (2, NONE, 0, 1), (1, NONE, 0, 0)):
        _, _, _, dones, info = step_env(env, game(env, *beside, time), act(env, first, NONE))
        assert (int(info["terminated"]), int(info["truncated"])) == (terminated, truncated)
        assert all(bool(done) == bool(terminated or truncated) for done in dones.values())


def test_rewards_and_events_of_loads() -> None:
    env = LBF(num_agents=3, num_foods=2, penalty=0.3)
    players = [[2, 3], [4, 3], [0, 0]]
    foods = [[3, 3], [6, 6]]

    def load(levels: list, *actions: int) -> tuple:
        state = game(env, players, levels, foods, [3, 2])
        _, state, rewards, _, info = step_env(env, state, act(env, *actions))
        return state.food_level.tolist(), list(rewards.values()), {k: v.tolist() for k, v in info["events"].items()}

    food_level, rewards, events = load([1, 2, 2], LOAD, LOAD, LOAD)
    assert food_level == [0, 2]
    np.testing.assert_allclose(rewards, [3 * 1 / 3 / 5, 3 * 2 / 3 / 5, 0], rtol=1e-6)
    assert events["loaded_jointly"] == events["food_loaded"] == [1, 1, 0]
    assert events["loaded_alone"] == events["load_failed"] == [0, 0, 0]

    food_level, rewards, events = load([3, 2, 2], LOAD, NONE, NONE)
    assert food_level == [0, 2]
    np.testing.assert_allclose(rewards, [3 / 5, 0, 0], rtol=1e-6)
    assert events["loaded_alone"] == events["food_loaded"] == [1, 0, 0]
    assert events["loaded_jointly"] == [0, 0, 0]

    food_level, rewards, events = load([1, 1, 2], LOAD, LOAD, LOAD)
    assert food_level == [3, 2]
    np.testing.assert_allclose(rewards, [-0.3, -0.3, 0], rtol=1e-6)
    assert events["load_failed"] == [1, 1, 0]


def test_border_food_made_by_hand_is_loaded_from_its_open_sides_only() -> None:
    env = LBF(num_foods=1, num_agents=2)
    for food, above_or_left, works in (
        ([0, 3], [1, 3], False),
        ([3, 0], [3, 1], False),
        ([0, 3], [0, 2], True),
        ([7, 3], [6, 3], True),
    ):
        state = game(env, [above_or_left, [5, 5]], [2, 1], [food], [1])
        _, after, *_ = step_env(env, state, act(env, LOAD, NONE))
        assert (int(after.food_level[0]) == 0) == works


def test_of_two_touching_foods_the_northern_is_loaded() -> None:
    env = LBF(num_foods=2)
    state = game(env, [[3, 3], [7, 7]], [2, 1], [[2, 3], [4, 3]], [1, 1])
    _, after, *_ = step_env(env, state, act(env, LOAD, NONE))
    assert after.food_level.tolist() == [0, 1]


def test_three_players_can_overlap_but_two_cannot() -> None:
    env = LBF(num_agents=3, num_foods=1)
    state = game(env, [[3, 2], [3, 3], [5, 3]], [1, 1, 1], [[6, 6]], [1])
    _, after, *_ = step_env(env, state, act(env, 4, SOUTH, NORTH))
    assert after.position.tolist() == [[3, 3], [3, 3], [5, 3]]
    *_, states = play(GAMES[0], jax.random.key(5), 256)
    assert (states.position[..., 0, :] != states.position[..., 1, :]).any(-1).all()


@few
@given(seed=seeds, coop=st.booleans())
def test_who_eats_everything_earns_one(seed: int, coop: bool) -> None:
    env = LBF(num_agents=3, force_coop=coop)
    state, total = jax.tree.map(lambda x: jnp.asarray(x[0]), resets(env, seed, 1)), 0.0
    done = jnp.bool_(False)
    for food in range(env.num_foods):
        if state.food_level[food] > 0:
            assert not done
            around = state.food_position[food][None] + MOVES[1:4]
            _, state, rewards, dones, _ = step_env(env, state._replace(position=around), act(env, LOAD, LOAD, LOAD))
            total, done = total + sum(map(float, rewards.values())), dones["__all__"]
    assert done
    assert total == pytest.approx(1, abs=1e-6)


@few
@given(env=st.sampled_from(GAMES), seed=seeds)
def test_games_of_a_batch_do_not_touch(env: LBF, seed: int) -> None:
    rng = np.random.default_rng(seed)
    state, order = resets(env, seed, 64), rng.permutation(64)
    actions = {agent: rng.integers(0, 6, 64).astype(np.int32) for agent in env.agents}
    take = partial(jax.tree.map, lambda x: x[order])
    shuffled_after = step_env(env, take(state), take(actions))
    chex.assert_trees_all_equal(shuffled_after, take(step_env(env, state, actions)))


@pytest.mark.parametrize("env", [GAMES[0], GAMES[2]], ids=lambda env: env.name)
def test_auto_reset_keeps_the_final_observation(env: LBF) -> None:
    env = dataclasses.replace(env, max_steps=2)
    first = jax.tree.map(lambda x: jnp.asarray(x[0]), resets(env, 0, 1))
    actions = act(env, *[NORTH] * env.num_agents)
    step = jax.jit(env.step)
    middle_obs, middle, _, dones, info = step(jax.random.key(1), first, actions)
    assert not dones["__all__"]
    chex.assert_trees_all_equal(info["final_observation"], middle_obs)
    last_obs, *_ = step_env(env, middle, actions)
    next_obs, next_state, _, dones, info = step(jax.random.key(2), middle, actions)
    assert dones["__all__"]
    assert info["truncated"]
    chex.assert_trees_all_equal(info["final_observation"], last_obs)
    chex.assert_trees_all_equal(next_obs, env.get_obs(next_state))
    assert next_state.time == 0
    assert any((next_obs[agent] != last_obs[agent]).any() for agent in env.agents)


def test_available_actions_are_those_that_do_something() -> None:
    env = LBF(num_foods=1)
    available = env.get_avail_actions(game(env, [[0, 0], [2, 3]], [1, 1], [[3, 3]], [1]))
    assert available["agent_0"].tolist() == [True, False, True, False, True, False]
    assert available["agent_1"].tolist() == [True, True, False, True, True, True]


# Spaces


@pytest.mark.parametrize("env", GAMES, ids=lambda env: env.name)
def test_spaces_are_true_and_tight(env: LBF) -> None:
    space = env.observation_space()
    obs, *_ = play(env, jax.random.key(5), 256)
    values = np.stack([obs[agent] for agent in env.agents])
    contains = jax.jit(jax.vmap(space.contains))
    assert contains(values.reshape(-1, *space.shape)).all()
    assert values.min() == space.low
    assert values.max() == space.high
    assert np.isfinite(values).all()
    one = values[0, 0, 0]
    assert not space.contains(one[..., :-1])
    assert not space.contains(one + space.high + 2)
    assert not env.action_space().contains(jnp.int32(6))


def test_a_non_square_field_is_not_transposed() -> None:
    env = LBF(rows=4, cols=11, num_foods=1)
    obs = env.get_obs(game(env, [[3, 10], [0, 5]], [1, 2], [[2, 9]], [3]))
    assert obs["agent_0"].tolist() == [2, 9, 3, 3, 10, 1, 0, 5, 2]
    assert env.observation_space().high == 10


# Compilation


def test_environments_do_not_share_compiled_functions() -> None:
    """Two environments, alike but for one setting, in turn: each keeps to its own setting."""
    base = LBF(num_agents=3, num_foods=2)
    state = game(base, [[2, 3], [5, 6], [0, 0]], [1, 1, 2], [[3, 3], [6, 6]], [1, 2], time=4)
    actions = act(base, LOAD, LOAD, NONE)

    def outcome(env: LBF) -> tuple:
        obs, _, rewards, _, info = step_env(env, state, actions)
        return bool(info["truncated"]), float(rewards["agent_0"]), float(rewards["agent_1"]), obs["agent_2"].tolist()

    ordinary = outcome(base)
    assert ordinary == (False, pytest.approx(1 / 3), 0, [6, 6, 2, -1, -1, 0, 0, 0, 2, 2, 3, 1, 5, 6, 1])
    for change, part, value in (
        ({"max_steps": 5}, 0, True),
        ({"normalize_reward": False}, 1, 1),
        ({"penalty": 0.5}, 2, -0.5),
        ({"sight": 1}, 3, [*[-1, -1, 0] * 2, 0, 0, 2, *[-1, -1, 0] * 2]),
    ):
        other = dataclasses.replace(base, **change)
        for _ in range(2):
            changed = outcome(other)
            assert changed[part] == value
            assert [x for i, x in enumerate(changed) if i != part] == [x for i, x in enumerate(ordinary) if i != part]
            assert outcome(base) == ordinary


@pytest.mark.parametrize("env", GAMES, ids=lambda env: env.name)
def test_step_keeps_the_form_of_the_state(env: LBF) -> None:
    key = jax.random.key(0)
    obs, state = jax.eval_shape(env.reset, key)
    next_obs, next_state, rewards, _, info = jax.eval_shape(env.step, key, state, act(env, *[0] * env.num_agents))
    chex.assert_trees_all_equal_shapes_and_dtypes((obs, state), (next_obs, next_state))
    weak = [leaf.weak_type for leaf in jax.tree.leaves((state, next_state))]
    assert not any(weak)
    assert all(reward.shape == () and reward.dtype == jnp.float32 for reward in rewards.values())
    assert all(event.shape == (env.num_agents,) for event in info["events"].values())


def test_steps_are_traced_once() -> None:
    env = LBF()
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def step(key: jax.Array, state: State, actions: dict[str, jax.Array]) -> tuple:
        return env.step(key, state, actions)

    _, state = env.reset(jax.random.key(0))
    for key in jax.random.split(jax.random.key(1), 4):
        _, state, *_ = step(key, state, act(env, NORTH, LOAD))


# Names and settings


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_names_of_themselves(name: str) -> None:
    family, variant = name.split("/")
    assert family == "lbf"
    assert parse(variant).name == name


@given(
    st.builds(
        dict,
        rows=st.integers(3, 20),
        cols=st.integers(3, 20),
        num_agents=st.integers(1, 9),
        num_foods=st.integers(1, 9),
        sight=st.none() | st.integers(1, 20),
        force_coop=st.booleans(),
        max_steps=st.integers(1, 500),
        min_player_level=st.integers(1, 3),
        max_player_level=st.integers(3, 5),
        max_food_level=st.none() | st.integers(1, 9),
        grid_observation=st.booleans(),
        penalty=st.floats(0, 10),
        normalize_reward=st.booleans(),
        observe_agent_levels=st.booleans(),
    )
)
def test_a_name_says_every_setting(chosen: dict[str, Any]) -> None:
    env = LBF(**chosen)
    assert env.name.startswith("lbf/")
    assert parse(env.name.removeprefix("lbf/")) == env


@given(st.text(max_size=30) | st.from_regex(r"(\d{0,2}s-)?\d{0,2}x\d{0,2}-\dp?-\df?(-coo?p)?(\?\w*=?\w*)?"))
def test_a_wrong_name_is_a_value_error(name: str) -> None:
    try:
        env = parse(name)
    except ValueError:
        pass
    else:
        assert parse(env.name.removeprefix("lbf/")) == env


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("8x8", "ROWSxCOLS-PLAYERSp-FOODSf"),
        ("", "8x8-2p-3f"),
        ("8x8-2p-3f?", "8x8-2p-3f?option=value"),
        ("8x8-2p-3f?penalti=1", "Did you mean 'penalty'"),
        ("8x8-2p-3f?penalty=x", "penalty must be a number"),
        ("8x8-2p-3f?max_steps=1.5", "max_steps must be an integer"),
        ("8x8-2p-3f?grid_observation=yes", "true or false"),
        ("8x8-2p-3f?penalty=1&penalty=2", "penalty twice"),
        ("2x8-2p-3f", "3 x 3"),
        ("8x8-0p-3f", "num_agents = 0"),
        ("8x8-2p-0f", "num_foods = 0"),
        ("0s-8x8-2p-3f", "sight = 0"),
        ("3x3-10p-1f", "10 players do not fit"),
    ],
)
def test_messages_for_wrong_names(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        parse(name)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": -1}, "3 x 3"),
        ({"max_steps": 0}, "max_steps = 0"),
        ({"min_player_level": 0}, "min_player_level = 0"),
        ({"min_player_level": 3}, "below min_player_level"),
        ({"min_food_level": 2, "max_food_level": 1}, "below min_food_level"),
        ({"max_food_level": 0}, "below min_food_level"),
        ({"min_food_level": 3}, "set max_food_level"),
        ({"penalty": -0.1}, "penalty"),
        ({"penalty": float("nan")}, "penalty"),
    ],
)
def test_impossible_settings_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LBF(**changed)


# Pictures


def test_a_picture_shows_players_and_food() -> None:
    env = LBF(rows=4, cols=6, num_agents=2, num_foods=1)
    state = game(env, [[0, 0], [3, 5]], [1, 2], [[1, 1]], [3])
    picture = env.render(state)
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    height, width, _ = picture.shape
    assert height * 6 == width * 4
    cell = height // 4
    cells = picture.reshape(4, cell, 6, cell, 3).swapaxes(1, 2)
    drawn = {(r, c) for r in range(4) for c in range(6) if cells[r, c].std() > 25}
    assert drawn == {(0, 0), (3, 5), (1, 1)}
    assert (env.render(state._replace(food_level=state.food_level * 0)) != picture).any()
