"""Scripted foraging partners: the contract of every file, and that each behaves as its description says."""

import functools
import itertools
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxscope.agents.partners.lbf._navigation import Board, first_step
from jaxscope.agents.scripted import ROLES, description, partner, partner_names, role
from jaxscope.envs.lbf import EAST, LBF, LOAD, MOVES, NONE, NORTH, SOUTH, WEST, State, parse
from jaxscope.types import View

NAMES = partner_names("lbf")
HELD_OUT = ["closest-food", "synchronized-loading", "team-center", "teammate-biased"]
GAMES = ["8x8-2p-3f", "2s-8x8-2p-3f", "2s-10x10-3p-3f", "6x9-2p-2f"]


def draw(picture, levels=(1, 1, 1), sight=None):
    """A game from a drawing: A, B, C are the players, digits are foods with their level."""
    lines = picture.split()
    cells = {(r, c): mark for r, line in enumerate(lines) for c, mark in enumerate(line) if mark != "."}
    players = sorted((mark, cell) for cell, mark in cells.items() if mark.isalpha())
    foods = [(cell, int(mark)) for cell, mark in cells.items() if mark.isdigit()]
    env = LBF(len(lines), len(lines[0]), num_agents=len(players), num_foods=len(foods), sight=sight)
    return env, State(
        position=jnp.array([cell for _, cell in players]),
        level=jnp.array(levels[: len(players)]),
        food_position=jnp.array([cell for cell, _ in foods]),
        food_level=jnp.array([level for _, level in foods]),
        total_level=jnp.array(sum(level for _, level in foods)),
        time=jnp.int32(0),
    )


@functools.partial(jax.jit, static_argnums=(0, 1))
def act(name, env, memory, state, seat, key):
    return partner(name, env).act((), memory, View(jnp.zeros(()), state, seat), key)


def first_action(name, game, seed=0):
    """What player A does at the start of an episode."""
    env, state = game
    return int(act(name, env, partner(name, env).initial_memory(()), state, jnp.int32(0), jax.random.key(seed))[0])


def actions_while(name, games, seed=0):
    """What player A does in the given states, one after the other, with its memory."""
    memory = partner(name, games[0][0]).initial_memory(())
    actions = []
    for step, (env, state) in enumerate(games):
        action, memory = act(name, env, memory, state, jnp.int32(0), jax.random.key(seed + step))
        actions.append(int(action))
    return actions


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def rollout(names, env, batch, key):
    """States before each step `[T, B]`, actions `[T, B, A]` and events `[T, B, A]` of whole episodes."""
    policies = [partner(name, env) for name in names]
    reset_key, play_key = jax.random.split(key)

    def step_one(state, memories, key):
        step_key, *act_keys = jax.random.split(key, 1 + len(policies))
        acted = [
            policy.act((), memory, View(jnp.zeros(()), state, jnp.int32(seat)), act_key)
            for seat, (policy, memory, act_key) in enumerate(zip(policies, memories, act_keys, strict=True))
        ]
        actions = {agent: action for agent, (action, _) in zip(env.agents, acted, strict=True)}
        _, after, _, _, info = env.step_env(step_key, state, actions)
        taken = jnp.stack([action for action, _ in acted])
        return after, [memory for _, memory in acted], (state, taken, info["events"])

    def step(carry, key):
        *carry, seen = jax.vmap(step_one)(*carry, jax.random.split(key, batch))
        return carry, seen

    _, states = jax.vmap(env.reset)(jax.random.split(reset_key, batch))
    memories = [many(policy.initial_memory(()), batch) for policy in policies]
    return jax.lax.scan(step, [states, memories], jax.random.split(play_key, env.horizon))[1]


def many(tree, batch):
    """Copies along a new leading axis."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), tree)


def play(name, other="closest-food", env=None, batch=64):
    env = env or parse("8x8-2p-3f")
    states, actions, events = rollout((name, other), env, batch, jax.random.key(3))
    return jax.tree.map(np.asarray, (states, actions, events))


def steps_between(cells, cell):
    """Manhattan distances, any leading axes."""
    return np.abs(cells - cell).sum(-1)


@functools.cache
def shadows(variant, batch=48):
    """All partners in seat 0 of the same random games: states `[T, B]` and each partner's actions `[T, B]`.

    They act on what they see and remember, but the game takes other actions.
    """
    env = parse(variant)
    states = rollout(("random",) * env.num_agents, env, batch, jax.random.key(5))[0]
    policies = [partner(name, env) for name in NAMES]

    def act_one(memories, state, key):
        keys = jax.random.split(key, len(policies))
        view = View(jnp.zeros(()), state, jnp.int32(0))
        acted = [p.act((), m, view, k) for p, m, k in zip(policies, memories, keys, strict=True)]
        return [memory for _, memory in acted], [action for action, _ in acted]

    def step(memories, given):
        state, key = given
        return jax.vmap(act_one)(memories, state, jax.random.split(key, batch))

    start = [many(policy.initial_memory(()), batch) for policy in policies]
    keys = jax.random.split(jax.random.key(6), env.horizon)
    actions = jax.jit(lambda *given: jax.lax.scan(step, start, given)[1])(states, keys)
    return states, dict(zip(NAMES, actions, strict=True))


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
    view = View(jax.ShapeDtypeStruct((), jnp.float32), state, jax.ShapeDtypeStruct((), jnp.int32))
    action, after = jax.eval_shape(lambda *given: policy.act((), *given), policy.initial_memory(()), view, key)
    assert (action.shape, action.dtype, action.weak_type) == ((), jnp.int32, False)
    kinds = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree) for tree in (memory, after)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("variant", GAMES)
def test_actions_are_in_range(variant):
    for name, actions in shadows(variant)[1].items():
        assert actions.dtype == jnp.int32, name
        assert (actions >= 0).all(), name
        assert (actions < 6).all(), name


@functools.partial(jax.jit, static_argnums=(0, 1))
def first_actions(name, env, states, seat, keys):
    """Of a batch of games at the start of an episode, with the memories after it."""
    memory = partner(name, env).initial_memory(())
    return jax.vmap(lambda state, key: act(name, env, memory, state, seat, key))(states, keys)


@pytest.mark.parametrize("name", NAMES)
def test_same_key_same_action_in_a_batch_or_alone_and_in_either_seat(name):
    env = parse("2s-8x8-2p-3f")
    states = jax.tree.map(lambda leaf: leaf[10], shadows("2s-8x8-2p-3f")[0])
    keys = jax.random.split(jax.random.key(1), 48)
    together, _ = first_actions(name, env, states, jnp.int32(0), keys)
    one = jax.tree.map(lambda leaf: leaf[7], states)
    memory = partner(name, env).initial_memory(())
    alone, _ = act(name, env, memory, one, jnp.int32(0), jax.random.split(jax.random.key(1), 48)[7])
    assert alone == together[7]
    swapped = states._replace(position=states.position[:, ::-1], level=states.level[:, ::-1])
    other_seat, _ = first_actions(name, env, swapped, jnp.int32(1), jax.random.clone(keys))
    np.testing.assert_array_equal(other_seat, together)


@pytest.mark.parametrize("name", NAMES)
def test_acts_on_no_more_than_its_sight(name):
    """What lies out of sight is moved to the farthest corner and changes its level: nothing may follow from that."""
    variant = "2s-8x8-2p-3f"
    env = parse(variant)
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), shadows(variant)[0])
    own = states.position[:, :1]
    corner = jnp.where(own < 4, 7, 0)

    def hidden(cells):
        return (jnp.abs(cells - own).max(-1) > env.window)[..., None]

    changed = states._replace(
        position=jnp.where(hidden(states.position), corner, states.position),
        level=jnp.where(hidden(states.position)[..., 0], 3 - states.level, states.level),
        food_position=jnp.where(hidden(states.food_position), corner, states.food_position),
        food_level=jnp.where(hidden(states.food_position)[..., 0], 5 - states.food_level, states.food_level),
        total_level=states.total_level + 1,
    )
    keys = jax.random.split(jax.random.key(2), len(own))
    seen = first_actions(name, env, states, jnp.int32(0), keys)
    unseen = first_actions(name, env, changed, jnp.int32(0), jax.random.clone(keys))
    jax.tree.map(np.testing.assert_array_equal, seen, unseen)


def test_partners_differ_from_each_other():
    """On the same states, no two partners agree in more than nine actions of ten."""
    states, actions = shadows("8x8-2p-3f")
    playing = np.asarray((states.food_level > 0).any(-1))
    for a, b in itertools.combinations(NAMES, 2):
        assert (np.asarray(actions[a]) != np.asarray(actions[b]))[playing].mean() > 0.1, (a, b)


# Navigation


def plain_first_step(rows, cols, start, goals, blocked):
    goals = {cell for cell in goals if cell not in blocked or cell == start}
    steps, queue = dict.fromkeys(goals, 0), deque(goals)
    while queue:
        row, col = cell = queue.popleft()
        for down, right in MOVES[NORTH : EAST + 1].tolist():
            near = (row + down, col + right)
            inside = 0 <= near[0] < rows and 0 <= near[1] < cols
            if inside and near not in steps and (near not in blocked or near == start):
                steps[near] = steps[cell] + 1
                queue.append(near)
    if steps.get(start, 0) == 0:
        return NONE
    nearer = [(start[0] + MOVES[move][0], start[1] + MOVES[move][1]) for move in (NORTH, SOUTH, WEST, EAST)]
    return next(move for move, cell in enumerate(nearer, NORTH) if steps.get(cell) == steps[start] - 1)


def pack(rows, cols, cells):
    number = sum(1 << (row * cols + col) for row, col in cells)
    return tuple(jnp.uint32(number >> shift & 0xFFFFFFFF) for shift in range(0, rows * cols, 32))


jitted_first_step = jax.jit(first_step, static_argnums=0)


@st.composite
def mazes(draw):
    rows, cols = draw(st.sampled_from([(8, 8), (5, 9), (3, 40), (9, 3), (1, 6)]))
    cells = [(row, col) for row in range(rows) for col in range(cols)]
    some = st.sets(st.sampled_from(cells), max_size=5)
    walls = draw(st.sets(st.sampled_from(cells), max_size=len(cells) // 2))
    return rows, cols, draw(st.sampled_from(cells)), draw(some), walls


@settings(max_examples=300, deadline=None)
@given(mazes())
def test_first_step_is_that_of_a_breadth_first_search(maze):
    rows, cols, start, goals, blocked = maze
    found = jitted_first_step(Board(rows, cols), jnp.array(start), pack(rows, cols, goals), pack(rows, cols, blocked))
    assert found == plain_first_step(rows, cols, start, goals, blocked)


def test_walks_longer_than_rows_plus_columns_are_found():
    """A snake through the whole grid."""
    rows = cols = 9
    walls = {(row, col) for row in range(1, 9, 2) for col in range(9) if col != (8 if row % 4 == 1 else 0)}
    for start, move in [((0, 0), EAST), ((0, 8), SOUTH), ((2, 8), WEST), ((8, 8), NONE)]:
        found = first_step(Board(rows, cols), jnp.array(start), pack(rows, cols, {(8, 8)}), pack(rows, cols, walls))
        assert found == move


def test_players_in_sight_are_walked_around_and_a_blocked_player_stays():
    assert first_action("closest-food", draw("..... .AB1. ..... .....")) == NORTH
    assert first_action("closest-food", draw("AB... C..1. ..... .....")) == NONE


def test_without_visible_food_it_wanders_to_uniform_waypoints():
    env, state = draw("........ ........ ........ ...A.... ........ ........ ......1. B.......", sight=1)
    step = jax.jit(env.step_env)
    moved, waypoints = [], []
    memory = partner("closest-food", env).initial_memory(())
    for seed in range(300):
        previous, key = memory, jax.random.key(seed)
        act_key, step_key = jax.random.split(key)
        action, memory = act("closest-food", env, memory, state._replace(food_level=jnp.zeros(1, int)), 0, act_key)
        _, after, *_ = step(step_key, state, {"agent_0": action, "agent_1": jnp.int32(NONE)})
        moved.append(bool((after.position[0] != state.position[0]).any()))
        if (memory.cell != previous.cell).any() and memory.cell[0] >= 0:
            waypoints.append(tuple(memory.cell.tolist()))
        state = after._replace(food_level=state.food_level)
    assert np.mean(moved) > 0.9
    assert len(set(waypoints)) > 20
    np.testing.assert_allclose(np.mean(waypoints, 0), 3.5, atol=1.0)


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
    seen = draw("........ ........ .1.A.2.B ........ ........ ........ ........", sight=4)
    gone = draw("........ ........ .1.A.2.. ........ ........ ........ B.......", sight=4)
    assert actions_while("teammate-biased", [seen, gone]) == [EAST, EAST]
    assert first_action("teammate-biased", gone) == WEST


def test_synchronized_loading_never_loads_alone():
    assert first_action("synchronized-loading", draw("..... .A1.. ..... ..B..", levels=(2, 2))) == NONE
    assert first_action("synchronized-loading", draw("..... .A1B. ..... .....", levels=(1, 1))) == LOAD
    assert first_action("synchronized-loading", draw("...... .A1... .....B ....2.")) == NONE
    states, actions, _ = play("synchronized-loading")
    assert loads(states, actions).sum() > 100
    assert (mate_at_food(states) | ~loads(states, actions)).all()


# Training partners


def loads(states, actions):
    """Where player A loads beside food that is there `[T, B]`."""
    return (actions[..., 0] == LOAD) & beside(states, 0).any(-1)


def beside(states, seat):
    """Foods that the player stands beside `[T, B, F]`."""
    return (steps_between(states.food_position, states.position[:, :, seat, None]) == 1) & (states.food_level > 0)


def mate_at_food(states):
    """Whether both players stand beside the same food `[T, B]`."""
    return (beside(states, 0) & beside(states, 1)).any(-1)


def test_highest_level_passes_by_light_food():
    assert first_action("highest-level", draw("....... .1A.... ....... ....... ..2.... ......B")) == SOUTH
    assert first_action("highest-level", draw("....... .2A.... ....... ....... ..2.... ......B")) == LOAD
    states, actions, _ = play("highest-level", "stay")
    at_top = (beside(states, 0) & (states.food_level == states.food_level.max(-1, keepdims=True))).any(-1)
    assert (at_top | ~loads(states, actions)).all()
    assert loads(states, actions).mean() > 0.5


def test_solo_forager_leaves_heavy_food_alone():
    assert first_action("solo-forager", draw("....... .2A.... ....... ....... ..1.... ......B")) == SOUTH
    assert first_action("solo-forager", draw("....... .2A.... ....... ....... ..1.... ......B", levels=(2, 1))) == LOAD
    states, actions, events = play("solo-forager")
    assert (events["load_failed"][..., 0] == 0).all()
    assert events["loaded_alone"][..., 0].sum() > 30
    only_heavy = (states.food_level > 0).any(-1) & ~(
        (states.food_level <= states.level[..., :1]) & (states.food_level > 0)
    ).any(-1)
    assert (actions[..., 0] != NONE)[only_heavy].mean() > 0.8


def test_central_waiter_waits_in_the_middle():
    assert first_action("central-waiter", draw("....... .1A.... ....... ...2... ....... ....... ......B")) == SOUTH
    assert first_action("central-waiter", draw("....... ...A... ...1... ......B .......", levels=(2, 2))) == NONE
    assert first_action("central-waiter", draw("....... ...A... ...1B.. ....... .......")) == LOAD
    states, actions, _ = play("central-waiter", "random")
    assert (mate_at_food(states) | ~loads(states, actions)).all()


def test_follower_stays_close_and_loads_where_its_teammate_stands():
    assert first_action("follower", draw("....... .1A.... ....... ....... ..B.... .......")) == SOUTH
    assert first_action("follower", draw("....... .1A.... ..B.... ....... ....... .......")) == NONE
    assert first_action("follower", draw("....... .1A.... .B..... ....... ....... .......")) == LOAD
    seen = draw("........ ........ ...A.B.. ........ ........ .1......", sight=2)
    gone = draw("........ B....... ...A.... ........ ........ .1......", sight=2)
    assert actions_while("follower", [seen, gone, gone]) == [EAST, EAST, EAST]
    for env in (parse("8x8-2p-3f"), parse("2s-8x8-2p-3f")):
        apart = {name: steps_between(*np.moveaxis(play(name, env=env)[0].position[15:], 2, 0)) for name in NAMES}
        means = {name: distance.mean() for name, distance in apart.items()}
        assert means["follower"] < min(means[name] for name in NAMES if name not in ("follower", "shepherd")) - 0.5
    states, actions, _ = play("follower")
    assert (mate_at_food(states) | ~loads(states, actions)).all()
    assert loads(states, actions).sum() > 100


def test_sweeper_eats_in_reading_order():
    assert first_action("sweeper", draw("....... .....1. ....... ....... ..A.... ..2...B")) in (NORTH, EAST)
    states, _, _ = play("sweeper", "stay", LBF(max_food_level=1))
    eaten_at = (states.food_level > 0).sum(0)
    assert (np.diff(eaten_at, axis=1) > 0).mean() > 0.95


def test_territorial_works_in_the_half_where_it_started():
    assert first_action("territorial", draw("........ ........ .1.A2... ........ ........ .......B")) == WEST
    crossed = draw("........ ........ .1..A..2 ........ ........ .......B")
    start = draw("........ ........ .1.A...2 ........ ........ .......B")
    assert actions_while("territorial", [start, crossed]) == [WEST, WEST]
    assert actions_while("territorial", [crossed, start]) == [EAST, EAST]
    for env in (parse("8x8-2p-3f"), parse("2s-8x8-2p-3f")):
        states, actions, _ = play("territorial", env=env)
        in_west = states.position[:, :, 0, 1] < 4
        assert (in_west == in_west[0]).mean() > 0.97
        food_here = ((states.food_position[..., 1] < 4) == in_west[0][None, :, None]) & beside(states, 0)
        assert (food_here.any(-1) | ~loads(states, actions)).all()
        nothing_to_load = ~(
            (states.food_level > 0) & ((states.food_position[..., 1] < 4) == in_west[0][None, :, None])
        ).any(-1)
        assert (actions[..., 0] != NONE)[nothing_to_load].mean() > 0.7


def test_fixed_choice_draws_each_food_equally_often_and_keeps_it():
    env, state = draw("1...... ....... ....... 1..A..1 ....... ....... ......B")
    keys = jax.random.split(jax.random.key(0), 600)
    _, memory = first_actions("fixed-choice", env, many(state, 600), jnp.int32(0), keys)
    np.testing.assert_allclose(np.bincount(memory.food, minlength=3) / 600, 1 / 3, atol=0.07)
    for seed in range(6):
        first, *later = actions_while("fixed-choice", [(env, state)] * 6, seed)
        assert later == [first] * 5
    chosen = act("fixed-choice", env, jax.tree.map(lambda leaf: leaf[0], memory), state, 0, jax.random.key(1))[1]
    eaten = state._replace(food_level=state.food_level.at[chosen.food].set(0))
    assert act("fixed-choice", env, chosen, eaten, 0, jax.random.key(2))[1].food != chosen.food


def test_farthest_food_commits_to_the_farthest():
    start = draw("........ ..1A.... ........ ......2. ........ .......B")
    later = draw("........ ..1..... ........ ...A..2. ........ .......B")
    turned = draw("........ ..1..... ........ ....A.2. ........ .......B")
    assert first_action("farthest-food", start) in (SOUTH, EAST)
    assert first_action("farthest-food", turned) != EAST
    assert actions_while("farthest-food", [start, later, turned])[1:] == [EAST, EAST]
    states, actions, _ = play("farthest-food", "stay")
    distance = steps_between(states.food_position, states.position[:, :, 0, None])[0]
    first_loaded = np.argmax(beside(states, 0)[loads(states, actions).argmax(0), np.arange(64)], -1)
    assert (distance[np.arange(64), first_loaded] == distance.max(-1)).mean() > 0.95


def test_keeps_apart_heads_away_from_its_teammate():
    assert first_action("keeps-apart", draw("........ .1...... ........ ...A...B ........ ......1.")) in (NORTH, WEST)
    assert first_action("keeps-apart", draw("........ .1...... ........ B..A.... ........ ......1.")) in (SOUTH, EAST)
    assert first_action("keeps-apart", draw("........ .1...... .A...... B....... ........ ......1.")) == LOAD
    assert first_action("keeps-apart", draw("........ .1...... ........ ..A..... ........ ....1..B", sight=3)) == NORTH
    distances = {name: steps_between(*np.moveaxis(play(name)[0].position[5:15], 2, 0)).mean() for name in HELD_OUT}
    assert steps_between(*np.moveaxis(play("keeps-apart")[0].position[5:15], 2, 0)).mean() > max(distances.values())


def test_impatient_tries_three_times_and_goes_on():
    beside_heavy = draw("....... ..2.... ..A.... ....... ....... .....2. B......")
    actions = actions_while("impatient", [beside_heavy] * 16)
    assert actions[:3] == [LOAD] * 3
    assert all(action in (SOUTH, EAST) for action in actions[3:15])
    assert actions[15] == LOAD
    states, actions, _ = play("impatient", "stay", parse("8x8-2p-3f-coop"))
    loading = loads(states, actions)
    runs = [len(list(run)) for game in loading.T for loads_now, run in itertools.groupby(game) if loads_now]
    assert set(runs) == {3}
    visited = (beside(states, 0) & loading[..., None]).any(0).sum(-1)
    assert (visited == 3).mean() > 0.5


def test_shepherd_fetches_its_teammate_and_leads_it_to_the_heaviest_food():
    assert first_action("shepherd", draw("........ ........ .1A..... ........ ......B. ........")) in (SOUTH, EAST)
    assert first_action("shepherd", draw("........ ........ .1A.B... ........ ..2..... ........")) == SOUTH
    assert first_action("shepherd", draw("........ ........ .1A..... ........ ..B..... ........")) == LOAD
    states, actions, _ = play("shepherd")
    near = steps_between(states.position[:, :, 0], states.position[:, :, 1]) <= 3
    assert (near | ~loads(states, actions)).all()
    assert loads(states, actions).sum() > 100


# Bounds


def test_bounds_stay_and_act_at_random():
    _, actions, _ = play("stay", "random")
    assert (actions[..., 0] == NONE).all()
    np.testing.assert_allclose(
        np.bincount(actions[..., 1].ravel(), minlength=6) / actions[..., 1].size, 1 / 6, atol=0.02
    )
