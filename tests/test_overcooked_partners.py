"""Scripted partners for Overcooked: the contract of every file, and that each behaves as its description says."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from overcooked_partner_games import (
    EXTRA_PAIRS,
    LAYOUTS,
    NAMES,
    OPPONENTS,
    QUICK_COMPILE,
    act_all,
    count,
    episodes,
    faced,
    first_memories,
    games_of,
    kitchen_of,
    longest,
    many,
    play,
    started,
    total,
)

from jaxscope.agents.scripted import ROLES, description, partner, partner_names, role
from jaxscope.agents.scripted_group import grouped
from jaxscope.envs.overcooked import INTERACT, STAY, objects, parse
from jaxscope.types import View

KINDS = " XOTPDS"
HELD_OUT = ["fetch-and-serve", "fill-and-start", "fill-only", "wait-and-serve"]
SCRIPTS = [name for name in NAMES if name not in ("random", "stay")]
OPEN = ["large_room", "cramped_room", "coordination_ring"]  # one chef reaches everything
FILLS = ("potting_onion", "potting_tomato")
TOUCHES_POT = (*FILLS, "pot_start", "soup_from_pot")


def pots_of(layout):
    return kitchen_of(layout).kitchen.tiles(KINDS.index("P"))


# Contract


def test_roles_are_as_published():
    assert partner_names("overcooked", "held-out") == HELD_OUT
    assert partner_names("overcooked", "bound") == ["random", "stay"]
    assert len(partner_names("overcooked", "training")) >= 9


@pytest.mark.parametrize("name", NAMES)
def test_file_says_what_it_is(name):
    assert role(name, "overcooked") in ROLES
    line = description(name, "overcooked")
    assert line.endswith(".")
    assert 20 < len(line) < 120


@pytest.mark.parametrize("variant", ["multiplayer_schelling", "cramped_room_single?old_dynamics=true"])
@pytest.mark.parametrize("name", NAMES)
def test_plays_with_any_number_of_chefs(name, variant):
    """Action and memory keep their types."""
    env = parse(variant)
    policy = partner(name, env)
    memory = policy.initial_memory(())
    key = jax.random.key(0)
    action, after = jax.eval_shape(
        lambda memory, state, key: policy.act((), memory, View(jnp.zeros(()), state, jnp.int32(0)), key),
        memory,
        jax.eval_shape(env.reset, key)[1],
        key,
    )
    assert (action.shape, action.dtype, action.weak_type) == ((), jnp.int32, False)
    kinds = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree) for tree in (memory, after)]
    assert kinds[0] == kinds[1]


def test_acts_alike_in_either_seat():
    env = parse("coordination_ring+forced_coordination?random_start_pos=true&rnd_obj_prob_thresh=0.7")
    states = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), 300))[1]

    @functools.partial(jax.jit, compiler_options=QUICK_COMPILE)
    def first(states, seat):
        keys = jax.random.split(jax.random.key(1), len(states.time))
        return jax.vmap(lambda state, key: act_all(env, first_memories(env), state, seat, key))(states, keys)

    swapped = states._replace(
        cell=states.cell[:, ::-1], orientation=states.orientation[:, ::-1], held=states.held[:, ::-1]
    )
    jax.tree.map(np.testing.assert_array_equal, first(states, 0), first(swapped, 1))


def test_partners_that_play_together_act_as_by_themselves():
    env = parse("cramped_room?random_start_pos=true&rnd_obj_prob_thresh=0.7")
    members = [partner(name, env) for name in ("fill-only", "left-worker", "stay", "stroller")]
    states = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), 60))[1]
    keys = jax.random.split(jax.random.key(1), 60)
    policy, params = grouped([members[game % len(members)] for game in range(60)])

    def one(params, state, key):
        view = View(jnp.zeros(()), state, jnp.int32(1))
        return policy.act(params, policy.initial_memory(params), view, key)[0]

    def alone(member, state, key):
        return member.act((), member.initial_memory(()), View(jnp.zeros(()), state, jnp.int32(1)), key)[0]

    together = jax.jit(jax.vmap(one), compiler_options=QUICK_COMPILE)(params, states, keys)
    for number, member in enumerate(members):
        mine = slice(number, None, len(members))
        game = jax.tree.map(lambda leaf, mine=mine: leaf[mine], states), keys[mine]
        act = jax.jit(jax.vmap(functools.partial(alone, member)), compiler_options=QUICK_COMPILE)
        np.testing.assert_array_equal(together[mine], act(*game))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scripts_interact_only_to_some_effect(layout):
    for name, other in itertools.product(SCRIPTS, OPPONENTS):
        assert total(play(name, other, layout), ["useless_interact"]) == 0, (name, other)


def disagreement(a, b, games):
    choices = games.choices[:, :, 0]
    return (choices[..., NAMES.index(a)] != choices[..., NAMES.index(b)]).mean()


def test_partners_differ_from_each_other():
    """More than a quarter of the actions, in games of random chefs or in those of one of the two, in some kitchen."""
    for a, b in itertools.combinations(NAMES, 2):
        games = [play("random", "greedy", layout) for layout in OPEN]
        games += [play(name, other, layout) for name in (a, b) for other in OPPONENTS[:4] for layout in OPEN]
        assert max(disagreement(a, b, played) for played in games) > 0.25, (a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_jams_dissolve(layout):
    """Nobody gets anywhere, although somebody walks, for at most a while."""
    for name, other, start in games_of(layout):
        games = play(name, other, layout, start)
        jammed = ~games.moved & (games.actions < STAY).any(-1)
        assert longest(jammed) < 60, (name, other)


def test_corridors_of_one_tile_do_not_stop_the_work():
    """Two corridors and a passage between them, all one tile wide; an ingredient lies at the end of each."""
    env = kitchen_of("cramped_corridor")
    names = ["careful", "fetch-and-serve", "fill-and-start", "greedy", "wait-and-serve"]
    pairs = [[0, 0], [0, 3], [1, 2], [2, 1], [2, 4], [3, 3], [3, 1], [4, 2]]
    playing = jnp.repeat(jnp.array(pairs), 8, axis=0)
    games = episodes(env, names, many(env.reset(jax.random.key(0))[1], len(playing)), playing)
    assert (games.events["valid_delivery"].sum((0, 2)) >= 2).all()
    hands = (games.states.held[1:] == games.states.held[:-1]).all(-1)
    assert longest(hands) < 200


@pytest.mark.parametrize("layout", OPEN)
def test_pairs_that_share_the_work_serve(layout):
    pairs = [
        ("greedy", "itself"),
        ("greedy", "fill-only"),
        ("fill-and-start", "fetch-and-serve"),
        ("wait-and-serve", "fill-and-start"),
        ("gap-filler", "itself"),
        ("careful", "itself"),
        ("solo-cook", "itself"),
    ]
    for a, b in pairs:
        games = play(a, b, layout)
        deliveries = count(games, "valid_delivery") + count(games, "valid_delivery", seat=1)
        assert (deliveries >= 3).all(), (a, b, deliveries)


def test_everybody_leaves_the_work_to_be_done_where_pots_start_by_themselves():
    env = parse("cramped_room?old_dynamics=true")
    names = [name for name in NAMES if name != "stay"]  # which blocks the dishes
    playing = jnp.repeat(jnp.array([[seat, names.index("greedy")] for seat in range(len(names))]), 2, axis=0)
    games = episodes(env, names, many(env.reset(jax.random.key(0))[1], len(playing)), playing)
    returns = dict(zip(names, games.reward.sum(0).reshape(-1, 2).min(1), strict=True))
    assert min(returns.values()) > 150, returns
    assert returns["hasty-cook"] == returns["greedy"]


# Held-out partners


@pytest.mark.parametrize(
    ("name", "other", "low", "high"),
    [
        ("fetch-and-serve", "fill-and-start", 305, 310),
        ("fill-and-start", "fetch-and-serve", 305, 310),
        ("wait-and-serve", "fill-and-start", 340, 350),
        ("fetch-and-serve", "fill-only", 9, 9),
        ("fill-and-start", "itself", 9, 9),
        ("greedy", "itself", 336, 400),
    ],
)
def test_returns_in_large_room_are_those_of_the_rules_in_the_reference(name, other, low, high):
    """Sparse and shaped reward, measured in overcooked_ai; its greedy model ignores the other chef and makes less."""
    returns = play(name, other).reward.sum(0)
    assert ((returns >= low) & (returns <= high)).all(), returns


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fill_only(layout):
    for other in OPPONENTS:
        games = play("fill-only", other, layout)
        assert total(games, ["pot_start", "dish_pickup", "soup_pickup", "soup_delivery"]) == 0
    assert (count(play("fill-only", "greedy", layout), "potting_onion") >= 3).all()
    full = play("fill-only", "stay", layout, "complete")
    assert not (full.actions[100:, :, 0] == INTERACT).any()
    if layout != "forced_coordination":
        assert (full.states.held[100:, :, 0] == objects.ONION).all()
    if layout != "coordination_ring":  # there the idle chef looks at its place to wait
        assert (full.actions[100:, :, 0] == STAY).all()


@pytest.mark.parametrize("layout", OPEN)
def test_fetch_and_serve(layout):
    for other in OPPONENTS:
        assert total(play("fetch-and-serve", other, layout), [*FILLS, "pot_start", "onion_pickup"]) == 0
    games = play("fetch-and-serve", "fill-and-start", layout)
    assert (count(games, "valid_delivery") >= 6).all()
    nothing_cooks = ~started(games.states).any(-1)
    assert ((games.states.held[..., 0] == objects.DISH) & nothing_cooks).any(0).all()


@pytest.mark.parametrize("layout", OPEN)
def test_fill_and_start(layout):
    for other in OPPONENTS:
        assert total(play("fill-and-start", other, layout), ["dish_pickup", "soup_pickup", "soup_delivery"]) == 0
    games = play("fill-and-start", "fetch-and-serve", layout)
    assert (count(games, "pot_start") >= 6).all()
    assert set(objects.size(objects.started_recipe(games.states.contents)).ravel()) == {0, 3}
    complete = play("fill-and-start", "stay", layout, "complete")
    assert (count(complete, "pot_start") >= 1).all()


@pytest.mark.parametrize("layout", OPEN)
def test_wait_and_serve(layout):
    for other in OPPONENTS:
        assert total(play("wait-and-serve", other, layout), [*FILLS, "pot_start", "onion_pickup"]) == 0
    games = play("wait-and-serve", "fill-and-start", layout)
    assert (count(games, "valid_delivery") >= 4).all()
    takes_dish = games.events["dish_pickup"][..., 0] > 0
    assert started(games.states).any(-1)[takes_dish].all()
    x, y = faced(kitchen_of(layout), games)
    at_pot = np.any([(x == pot[0]) & (y == pot[1]) for pot in pots_of(layout)], axis=0)
    waits = (games.actions[..., 0] == STAY) & (games.states.held[..., 0] == objects.DISH)
    assert (waits & at_pot).sum() > 10


def test_held_out_partners_work_through_a_counter_where_the_kitchen_is_divided():
    """Seat 0 has the pots and the hatch, seat 1 the ingredients and the dishes."""
    layout = "forced_coordination"
    assert (count(play("fill-only", "fill-only", layout), "potting_onion") == 6).all()
    handed = play("greedy", "fetch-and-serve", layout).states.contents[-1] == objects.DISH
    assert (handed.sum(-1) == 1).all()
    assert (count(play("fill-and-start", "fill-and-start", layout), "pot_start") == 2).all()


# Training partners


@pytest.mark.parametrize("layout", LAYOUTS)
def test_greedy_does_the_whole_task(layout):
    games = play("greedy", "itself", layout)
    both = count(games, "valid_delivery") + count(games, "valid_delivery", seat=1)
    assert (both >= 7).all()
    if layout in ("large_room", "cramped_room"):
        alone = play("greedy", "stay", layout)
        assert (count(alone, "valid_delivery") >= 5).all()
        assert (count(alone, "potting_onion") >= 15).all()


@pytest.mark.parametrize("layout", OPEN)
def test_careful_keeps_its_distance(layout):
    games = play("careful", "greedy", layout)
    env = kitchen_of(layout)
    x, y = games.states.cell // env.height, games.states.cell % env.height
    apart = abs(x[..., 0] - x[..., 1]) + abs(y[..., 0] - y[..., 1])
    choices = {name: games.choices[:, :, 0, NAMES.index(name)] for name in ("careful", "greedy")}
    walks = choices["greedy"] < STAY
    waits = (choices["careful"] != choices["greedy"])[walks]
    assert waits[apart[walks] <= 2].mean() > 0.5
    assert (choices["careful"] == choices["greedy"])[apart > 4].all()
    assert (count(games, "valid_delivery") + count(games, "valid_delivery", seat=1) >= 5).all()


def test_careful_alone_does_what_greedy_does():
    env = parse("cramped_room_single")
    games = episodes(env, ["careful", "greedy"], many(env.reset(jax.random.key(0))[1], 2), jnp.array([[0], [1]]))
    np.testing.assert_array_equal(games.actions[:, 0], games.actions[:, 1])
    assert (count(games, "valid_delivery") >= 5).all()


@pytest.mark.parametrize("layout", OPEN)
def test_dawdler_rests(layout):
    games = play("dawdler", "greedy", layout)
    acts = games.actions[..., 0] != STAY
    assert longest(acts) == 1
    assert acts.mean() > 0.15
    assert total(games, [*FILLS, "soup_delivery", "pot_start"]) > 5


@pytest.mark.parametrize("layout", OPEN)
def test_pot_starter_only_starts(layout):
    games = play("pot-starter", "fill-only", layout)
    pots = len(pots_of(layout))
    assert (count(games, "pot_start") == pots).all()
    for other in OPPONENTS:
        assert (play("pot-starter", other, layout).states.held[..., 0] == 0).all()


@pytest.mark.parametrize("layout", OPEN)
def test_pot_beginner_puts_one_ingredient_into_each_pot(layout):
    for other in OPPONENTS:
        games = play("pot-beginner", other, layout)
        assert total(games, ["pot_start", "dish_pickup", "soup_pickup", "soup_delivery"]) == 0
    alone = play("pot-beginner", "stay", layout)
    assert (count(alone, "potting_onion") == len(pots_of(layout))).all()
    served = play("pot-beginner", "greedy", layout)
    assert (count(served, "potting_onion") >= 2).all()
    assert (count(served, "potting_onion", seat=1) >= count(served, "potting_onion")).all()
    assert (count(served, "valid_delivery", seat=1) >= 2).all()


@pytest.mark.parametrize("layout", OPEN)
def test_late_server_fetches_dishes_for_what_is_done(layout):
    for other in OPPONENTS:
        assert total(play("late-server", other, layout), [*FILLS, "pot_start", "onion_pickup"]) == 0
    games = play("late-server", "fill-and-start", layout)
    assert (count(games, "valid_delivery") >= 4).all()
    takes_dish = games.events["dish_pickup"][..., 0] > 0
    assert objects.is_done(games.states.contents).any(-1)[takes_dish].all()
    ready = play("late-server", "stay", layout, "ready")
    assert (count(ready, "valid_delivery") == len(pots_of(layout))).all()


@pytest.mark.parametrize("layout", OPEN)
def test_dish_runner_puts_dishes_near_pots(layout):
    for other in OPPONENTS:
        games = play("dish-runner", other, layout)
        assert total(games, [*TOUCHES_POT, "onion_pickup", "soup_delivery"]) == 0
    env = kitchen_of(layout)
    games = play("dish-runner", "fill-only", layout)
    pots = pots_of(layout)
    lying = games.states.contents[-1] == objects.DISH
    assert (lying.sum(-1) == len(pots)).all()
    for cell in {cell for _, cell in zip(*np.nonzero(lying), strict=True)}:
        x, y = divmod(int(cell), env.height)
        assert min(abs(x - px) + abs(y - py) for px, py in pots) <= 3


@pytest.mark.parametrize("layout", OPEN)
def test_counter_server_takes_dishes_from_counters_only(layout):
    games = play("counter-server", "stay", layout, "ready")
    assert (count(games, "valid_delivery") == len(pots_of(layout))).all()
    for other in OPPONENTS:
        games = play("counter-server", other, layout)
        assert total(games, [*FILLS, "pot_start", "onion_pickup"]) == 0
        assert total(games, ["dish_pickup"]) <= total(games, ["counter_pickup"])


@pytest.mark.parametrize("layout", OPEN)
def test_counter_passer_works_for_its_teammate(layout):
    for other in OPPONENTS:
        assert total(play("counter-passer", other, layout), [*TOUCHES_POT, "soup_delivery"]) == 0
    games = play("counter-passer", "greedy", layout)
    assert (count(games, "onion_drop") >= 2).all()
    assert (count(games, "dish_drop") >= 1).all()
    assert (count(games, "counter_pickup", seat=1) >= 2).all()
    assert (count(games, "valid_delivery", seat=1) >= 2).all()


@pytest.mark.parametrize(("name", "side"), [("left-worker", -1), ("right-worker", 1)])
@pytest.mark.parametrize("layout", OPEN)
def test_side_workers_keep_to_their_half(name, side, layout):
    env = kitchen_of(layout)
    for other in OPPONENTS:
        games = play(name, other, layout)
        x, y = faced(env, games)
        kind = np.array(env.kitchen.rows).view("U1").reshape(env.height, env.width)[y, x]
        beyond = side * (2 * x - (env.width - 1))
        works = games.actions[..., 0] == INTERACT
        assert (beyond[works & (kind != "X")] >= 0).all()
        assert (beyond[works] >= -2).all()
    if (name, layout) != ("right-worker", "coordination_ring"):  # which has no dispenser in its right half
        assert total(play(name, "greedy", layout), ["counter_drop", *FILLS]) >= 3


def test_side_workers_complete_each_other():
    for layout in ("large_room", "forced_coordination"):
        for a, b in EXTRA_PAIRS if layout == "large_room" else EXTRA_PAIRS[1:]:
            games = play(a, b, layout)
            assert (count(games, "valid_delivery") + count(games, "valid_delivery", seat=1) >= 6).all()


@pytest.mark.parametrize("layout", OPEN)
def test_hasty_cook_starts_what_is_there(layout):
    games = play("hasty-cook", "stay", layout)
    sizes = objects.size(objects.started_recipe(games.states.contents)).max(-1)
    assert set(np.unique(sizes)) == {0, 1}
    assert (count(games, "pot_start") >= 1).all()
    assert total(play("hasty-cook", "greedy", layout), ["soup_delivery"]) >= 4


@pytest.mark.parametrize("layout", OPEN)
def test_solo_cook_makes_one_soup_at_a_time(layout):
    games = play("solo-cook", "greedy", layout)
    fetches = games.events["dish_pickup"][..., 0] > 0
    done = objects.is_done(games.states.contents).any(-1)
    assert done[fetches].all()
    if layout != "coordination_ring":
        alone = play("solo-cook", "stay", layout)
        assert (count(alone, "valid_delivery") >= 4).all()
        assert (started(alone.states).sum(-1) <= 1).all()


@pytest.mark.parametrize("layout", OPEN)
def test_gap_filler_does_what_its_teammate_does_not(layout):
    server = play("gap-filler", "fill-only", layout)
    assert (count(server, "valid_delivery") >= 4).all()
    assert total(server, FILLS) <= 3 * len(server.reward[0])
    filler = play("gap-filler", "fetch-and-serve", layout)
    assert (count(filler, "potting_onion") >= 9).all()
    assert total(filler, ["soup_delivery", "dish_pickup"]) == 0


@pytest.mark.parametrize("layout", OPEN)
def test_stroller_walks_everywhere_and_touches_nothing(layout):
    games = play("stroller", "stay", layout)
    assert not (games.actions[..., 0] == INTERACT).any()
    floor = len(kitchen_of(layout).kitchen.tiles(KINDS.index(" ")))
    for game in games.states.cell[..., 0].T:
        assert len(set(game)) > 0.7 * (floor - 1)


# Bounds


def test_bounds_stay_and_act_at_random():
    assert (play("stay", "greedy").actions[..., 0] == STAY).all()
    actions = play("random", "greedy").actions[..., 0]
    np.testing.assert_allclose(np.bincount(actions.ravel(), minlength=6) / actions.size, 1 / 6, atol=0.06)
