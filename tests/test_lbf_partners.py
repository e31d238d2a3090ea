"""Scripted foraging partners: the contract of every file, and that each behaves as its description says."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lbf_partner_games import (
    NAMES,
    QUICK_COMPILE,
    act_all,
    actions_while,
    apart,
    beside,
    draw,
    first_action,
    first_memories,
    loads,
    many,
    play,
    scattered,
    shares_food,
    steps_between,
    walk,
)

from jaxscope.agents.scripted import ROLES, description, partner, partner_names, role
from jaxscope.envs.lbf import EAST, LBF, LOAD, MOVES, NONE, NORTH, SOUTH, WEST, parse
from jaxscope.types import View

HELD_OUT = ["closest-food", "synchronized-loading", "team-center", "teammate-biased"]
GAMES = ["8x8-2p-3f", "2s-8x8-2p-3f", "2s-10x10-3p-3f", "6x9-2p-2f"]


# Contract


def test_roles_are_as_published():
    assert partner_names("lbf", "held-out") == HELD_OUT
    assert partner_names("lbf", "bound") == ["random", "stay"]
    assert len(partner_names("lbf", "training")) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_file_says_what_it_is(name):
    assert role(name, "lbf") in ROLES
    line = description(name, "lbf")
    assert line.endswith(".")
    assert 20 < len(line) < 120


@pytest.mark.parametrize("variant", GAMES)
@pytest.mark.parametrize("name", NAMES)
def test_action_and_memory_keep_their_types(name, variant):
    env = parse(variant)
    policy = partner(name, env)
    memory = jax.tree.map(jax.typeof, policy.initial_memory(()))
    key = jax.random.key(0)
    state = jax.eval_shape(env.reset, key)[1]
    action, after = jax.eval_shape(
        lambda memory, state, key: policy.act((), memory, View(jnp.zeros(()), state, jnp.int32(0)), key),
        policy.initial_memory(()),
        state,
        key,
    )
    assert (action.shape, action.dtype, action.weak_type) == ((), jnp.int32, False)
    kinds = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree) for tree in (memory, after)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("variant", GAMES)
def test_scripts_take_possible_actions_only(variant):
    """No walk against the border or into food, no LOAD away from food."""
    env = parse(variant)
    states = scattered(env, 200)
    positions, food_positions, food_levels = map(np.asarray, (states.position, states.food_position, states.food_level))

    @functools.partial(jax.jit, compiler_options=QUICK_COMPILE)
    def run(key):
        keys = jax.random.split(key, 200)
        return jax.vmap(lambda state, key: act_all(env, first_memories(env), state, jnp.int32(0), key)[0])(states, keys)

    actions = np.asarray(run(jax.random.key(0)))
    assert actions.dtype == np.int32
    assert ((actions >= 0) & (actions < 6)).all()
    scripts = np.array([name != "random" for name in NAMES])
    wanted = (positions[:, :1] + MOVES[actions])[:, scripts]
    assert ((wanted >= 0) & (wanted < np.array([env.rows, env.cols]))).all()
    on_food = (wanted[:, :, None] == food_positions[:, None]).all(-1) & (food_levels > 0)[:, None]
    assert not on_food.any()
    near_food = (steps_between(food_positions, positions[:, :1]) == 1) & (food_levels > 0)
    assert (near_food.any(-1)[:, None] | (actions != LOAD)[:, scripts]).all()


@pytest.fixture(scope="module")
def short_sighted():
    """A game of short sight, states of it `[B]`, and every partner's first action and memory in them."""
    env = parse("2s-8x8-2p-3f")
    states = scattered(env, 600, seed=1)

    @functools.partial(jax.jit, compiler_options=QUICK_COMPILE)
    def first(states, seat):
        keys = jax.random.split(jax.random.key(1), len(states.time))
        return jax.vmap(lambda state, key: act_all(env, first_memories(env), state, seat, key))(states, keys)

    return env, states, first


def test_acts_alike_in_either_seat(short_sighted):
    _, states, first = short_sighted
    swapped = states._replace(position=states.position[:, ::-1], level=states.level[:, ::-1])
    jax.tree.map(np.testing.assert_array_equal, first(states, 0), first(swapped, 1))


def test_acts_on_no_more_than_its_sight(short_sighted):
    """What lies out of sight is moved to the farthest corner and changes its level: nothing may follow from that."""
    env, states, first = short_sighted
    own = states.position[:, :1]
    corner = jnp.where(own < 4, 7, 0)

    def hidden(cells):
        return jnp.abs(cells - own).max(-1) > env.sight

    changed = states._replace(
        position=jnp.where(hidden(states.position)[..., None], corner, states.position),
        level=jnp.where(hidden(states.position), 3 - states.level, states.level),
        food_position=jnp.where(hidden(states.food_position)[..., None], corner, states.food_position),
        food_level=jnp.where(hidden(states.food_position), 5 - states.food_level, states.food_level),
        total_level=states.total_level + 1,
    )
    jax.tree.map(np.testing.assert_array_equal, first(states, 0), first(changed, 0))


def disagreement(a, b, games):
    """In how many of the steps with food left two partners would act differently, given the same randomness."""
    choices = games.choices[:, :, 0][(games.states.food_level > 0).any(-1)]
    return (choices[:, NAMES.index(a)] != choices[:, NAMES.index(b)]).mean()


@pytest.mark.parametrize("variant", ["8x8-2p-3f", "2s-8x8-2p-3f"])
def test_partners_differ_from_each_other(variant):
    """More than a tenth of the actions, in random games or in those that the two of them play.

    The published held-out ones are exempt among themselves: with short sight three of them nearly coincide.
    """
    for a, b in itertools.combinations(NAMES, 2):
        at_random = disagreement(a, b, play("random", "random", variant))
        at_play = np.mean([disagreement(a, b, play(name, "closest-food", variant)) for name in (a, b)])
        assert max(at_random, at_play) > 0.1 or {a, b} <= set(HELD_OUT), (a, b)


# Held-out partners


def test_closest_food_ignores_levels_and_breaks_ties_in_reading_order():
    assert first_action("closest-food", draw("....... .1..... ....A.. .....3. ......B")) == SOUTH
    assert first_action("closest-food", draw("....... .1.A.1. ....... ....... ......B")) == WEST
    assert first_action("closest-food", draw("....... .1..... ....... ....A3. ......B")) == LOAD


def test_team_center_goes_to_the_food_between_the_players():
    picture = "1...... ....... ..A.... ....2.. ....... ....... .1....B"
    assert first_action("team-center", draw("....... .1A.... ....... ...2... ....... ....... ......B")) == SOUTH
    assert first_action("closest-food", draw("....... .1A.... ....... ...2... ....... ....... ......B")) == LOAD
    assert first_action("team-center", draw(picture)) in (SOUTH, EAST)
    assert first_action("team-center", draw("....... .1A.... ....... ..2.... ....... ....... ......B", sight=2)) == LOAD
    assert first_action("team-center", draw("....... .1.A... ....... ....... .2.B... ...C...")) == SOUTH


def test_teammate_biased_goes_to_the_food_of_its_teammate_and_remembers_it():
    near_mate = "........ .1.A.... ........ ....B... .....2.."
    assert first_action("teammate-biased", draw(near_mate)) == SOUTH
    assert first_action("closest-food", draw(near_mate)) == WEST
    seen = draw("........ ........ .1.A.2B. ........ ........ ........ ........", sight=3)
    gone = draw("........ ........ .1.A.2.. ........ ........ ........ B.......", sight=3)
    assert actions_while("teammate-biased", [seen, gone]) == [EAST, EAST]
    assert first_action("teammate-biased", gone) == WEST


def test_synchronized_loading_never_loads_alone():
    assert first_action("synchronized-loading", draw("..... .A1.. ..... ..B..", levels=(2, 2))) == NONE
    assert first_action("synchronized-loading", draw("..... .A1B. ..... .....", levels=(1, 1))) == LOAD
    assert first_action("synchronized-loading", draw("...... .A1... .....B ....2.")) == NONE
    games = play("synchronized-loading")
    assert loads(games).sum() > 10
    assert (shares_food(games) | ~loads(games)).all()


# Training partners


def test_heavy_lifter_leaves_light_food_to_others():
    assert first_action("heavy-lifter", draw("....... .1A.... ....... ..2.... ....... ..3.... ......B")) == SOUTH
    assert first_action("heavy-lifter", draw("....... .2A.... ....... ....... ..2.... ......B")) == LOAD
    assert first_action("heavy-lifter", draw("....... .2A.... ....... ....... ..2.... ......B", levels=(2, 1))) != LOAD
    games = play("heavy-lifter")
    level = games.states.food_level
    heavy = np.where(level > games.states.level[..., :1], level, 0)
    at_heaviest = (beside(games) & (heavy > 0) & (heavy == heavy.max(-1, keepdims=True))).any(-1)
    assert (at_heaviest | ~loads(games)).all()
    assert games.events["loaded_jointly"][..., 0].sum() > 5
    assert (games.actions[..., 0] != NONE)[(heavy == 0).all(-1)].mean() > 0.8


def test_solo_forager_leaves_heavy_food_alone():
    assert first_action("solo-forager", draw("....... .2A.... ....... ....... ..1.... ......B")) == SOUTH
    assert first_action("solo-forager", draw("....... .2A.... ....... ....... ..1.... ......B", levels=(2, 1))) == LOAD
    games = play("solo-forager")
    assert (games.events["load_failed"][..., 0] == 0).all()
    assert games.events["loaded_alone"][..., 0].sum() > 15
    level = games.states.food_level
    light = (level > 0) & (level <= games.states.level[..., :1])
    assert (games.actions[..., 0] != NONE)[~light.any(-1)].mean() > 0.8


def test_central_waiter_waits_in_the_middle():
    assert first_action("central-waiter", draw("....... .1A.... ....... ...2... ....... ....... ......B")) == SOUTH
    assert first_action("central-waiter", draw("....... ...A... ...1... ......B .......", levels=(2, 2))) == NONE
    assert first_action("central-waiter", draw("....... ...A... ...1B.. ....... .......")) == LOAD
    assert first_action("central-waiter", draw("........ .A...... ........ ........ ........ ......1.", sight=2)) in (
        SOUTH,
        EAST,
    )
    games = play("central-waiter", "stay")
    doubled = steps_between(2 * games.states.food_position, 7)
    chosen = np.argmin(np.where(games.states.food_level > 0, doubled, 99), -1)[..., None]
    assert np.take_along_axis(beside(games), chosen, -1)[20:].mean() > 0.9
    assert (shares_food(games) | ~loads(games)).all()


def test_follower_stays_close_and_loads_where_its_teammate_stands():
    assert first_action("follower", draw("....... .1A.... ....... ....... ..B.... .......")) == SOUTH
    assert first_action("follower", draw("....... .1A.... ..B.... ....... ....... .......")) == NONE
    assert first_action("follower", draw("....... .1A.... .B..... ....... ....... .......")) == LOAD
    seen = draw("........ ........ ...A.B.. ........ ........ .1......", sight=2)
    gone = draw("........ B....... ...A.... ........ ........ .1......", sight=2)
    assert actions_while("follower", [seen, gone, gone]) == [EAST, EAST, EAST]
    for variant in ("8x8-2p-3f", "2s-8x8-2p-3f"):
        means = {name: apart(play(name, variant=variant))[20:].mean() for name in NAMES}
        others = [mean for name, mean in means.items() if name not in ("follower", "shepherd")]
        assert means["follower"] < min(others) - 0.3
    games = play("follower")
    assert (shares_food(games) | ~loads(games)).all()
    assert games.events["loaded_jointly"][..., 0].sum() > 15


def test_sweeper_goes_by_reading_order_and_combs_the_grid():
    assert first_action("sweeper", draw("....... .....1. ....... ....... ..A.... ..2...B")) in (NORTH, EAST)
    games = play("sweeper", "stay")
    first_left = np.argmax(games.states.food_level > 0, -1)[..., None]
    at_first = np.take_along_axis(beside(games), first_left, -1)[..., 0]
    assert (at_first | ~loads(games)).all()
    assert (at_first & loads(games)).mean() > 0.5
    assert walk("sweeper", LBF(8, 7, num_foods=1, sight=1), (1, 0), 22) == [
        *[(1, col) for col in range(1, 7)],
        *[(row, 6) for row in range(2, 5)],
        *[(4, col) for col in range(5, -1, -1)],
        *[(row, 0) for row in range(5, 8)],
        *[(7, col) for col in range(1, 5)],
    ]


def test_territorial_works_in_the_half_where_it_started():
    assert first_action("territorial", draw("........ ........ .1.A2... ........ ........ .......B")) == WEST
    west = draw("........ ........ .1.A...2 ........ ........ .......B")
    east = draw("........ ........ .1..A..2 ........ ........ .......B")
    assert actions_while("territorial", [west, east]) == [WEST, WEST]
    assert actions_while("territorial", [east, west]) == [EAST, EAST]
    for variant in ("8x8-2p-3f", "2s-8x8-2p-3f"):
        games = play("territorial", variant=variant)
        in_west = games.states.position[:, :, 0, 1] < 4
        assert (in_west == in_west[0]).mean() > 0.97
        own = (games.states.food_position[..., 1] < 4) == in_west[0][None, :, None]
        assert ((beside(games) & own).any(-1) | ~loads(games)).all()
        nothing_left = ~((games.states.food_level > 0) & own).any(-1)
        assert (games.actions[..., 0] != NONE)[nothing_left].mean() > 0.7


def test_fixed_choice_draws_each_food_equally_often_and_keeps_it():
    env, state = draw("1...... ....... ....... 1..A..1 ....... ....... ......B")
    policy = partner("fixed-choice", env)

    @jax.jit
    def choose(memory, state, keys):
        view = View(jnp.zeros(()), state, jnp.int32(0))
        return jax.vmap(lambda memory, key: policy.act((), memory, view, key)[1])(memory, keys)

    chosen = choose(many(policy.initial_memory(()), 600), state, jax.random.split(jax.random.key(0), 600))
    np.testing.assert_allclose(np.bincount(chosen.food, minlength=3) / 600, 1 / 3, atol=0.07)
    kept = choose(chosen, state, jax.random.split(jax.random.key(1), 600))
    np.testing.assert_array_equal(kept.food, chosen.food)
    eaten = state._replace(food_level=state.food_level.at[1].set(0))
    after = choose(chosen, eaten, jax.random.split(jax.random.key(2), 600)).food
    np.testing.assert_array_equal(after[chosen.food != 1], chosen.food[chosen.food != 1])
    np.testing.assert_allclose(np.bincount(after[chosen.food == 1], minlength=3) / 200, [0.5, 0, 0.5], atol=0.15)


def test_farthest_food_commits_to_the_farthest():
    start = draw("........ ..1A.... ........ ......2. ........ .......B")
    halfway = draw("........ ..1..... ........ ....A.2. ........ .......B")
    assert first_action("farthest-food", start) in (SOUTH, EAST)
    assert first_action("farthest-food", halfway) in (NORTH, WEST)
    assert actions_while("farthest-food", [start, halfway])[1] == EAST
    games = play("farthest-food", "stay")
    distance = steps_between(games.states.food_position, games.states.position[:, :, 0, None])[0]
    target = np.argmax(np.where(games.states.food_level[0] > 0, distance, -1), -1)
    game = np.arange(len(target))
    assert beside(games)[loads(games).argmax(0), game, target].mean() > 0.9


def test_keeps_apart_heads_away_from_its_teammate():
    assert first_action("keeps-apart", draw("........ .1...... ........ ...A...B ........ ......1.")) in (NORTH, WEST)
    assert first_action("keeps-apart", draw("........ .1...... ........ B..A.... ........ ......1.")) in (SOUTH, EAST)
    assert first_action("keeps-apart", draw("........ .1...... .A...... B....... ........ ......1.")) == LOAD
    assert first_action("keeps-apart", draw("........ .1...... ........ ..A..... ........ ....1..B", sight=3)) == NORTH
    assert first_action("keeps-apart", draw("........ ........ ........ ...AB... ........ ......1.", sight=2)) in (
        NORTH,
        WEST,
    )
    distances = {name: apart(play(name))[5:15].mean() for name in [*HELD_OUT, "keeps-apart"]}
    assert max(distances, key=distances.__getitem__) == "keeps-apart"


def test_impatient_tries_three_times_and_goes_on():
    env, state = draw("....... ..2.... ..A.... ....... ....... .....2. B......")
    policy = partner("impatient", env)

    @jax.jit
    def stand_still(keys):
        view = View(jnp.zeros(()), state, jnp.int32(0))

        def step(memory, key):
            action, memory = policy.act((), memory, view, key)
            return memory, action

        return jax.lax.scan(step, policy.initial_memory(()), keys)[1]

    actions = stand_still(jax.random.split(jax.random.key(0), 16)).tolist()
    assert actions[:3] == [LOAD] * 3
    assert set(actions[3:15]) <= {SOUTH, EAST}
    assert actions[15] == LOAD
    games = play("impatient", "stay")
    runs = [len(list(run)) for game in loads(games).T for loading, run in itertools.groupby(game) if loading]
    assert max(runs) == 3
    heavy = games.states.food_level[0] > games.states.level[0, :, :1]
    visited = (beside(games) & loads(games)[..., None]).any(0)
    assert visited[heavy].mean() > 0.8


def test_shepherd_fetches_its_teammate_and_leads_it_to_the_heaviest_food():
    assert first_action("shepherd", draw("........ ........ .1A..... ........ ......B. ........")) in (SOUTH, EAST)
    assert first_action("shepherd", draw("........ ........ .1A.B... ........ ..2..... ........")) == SOUTH
    assert first_action("shepherd", draw("........ ........ .1A..... ........ ..B..... ........")) == LOAD
    games = play("shepherd")
    assert ((apart(games) <= 3) | ~loads(games)).all()
    assert games.events["loaded_jointly"][..., 0].sum() > 10


# Bounds


def test_bounds_stay_and_act_at_random():
    actions = play("stay", "random").actions
    assert (actions[..., 0] == NONE).all()
    frequencies = np.bincount(actions[..., 1].ravel(), minlength=6) / actions[..., 1].size
    np.testing.assert_allclose(frequencies, 1 / 6, atol=0.03)
