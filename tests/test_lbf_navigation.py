"""Walking of the scripted foraging partners: shortest walks, obstacles, waypoints."""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from lbf_partner_games import draw as drawn
from lbf_partner_games import first_action

from jaxscope.agents.partners.lbf._navigation import Board, first_step
from jaxscope.agents.scripted import partner
from jaxscope.envs.lbf import EAST, LBF, MOVES, NONE, NORTH, SOUTH, WEST
from jaxscope.types import View


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
    assert first_action("closest-food", drawn("..... .AB1. ..... .....")) == NORTH
    assert first_action("closest-food", drawn("AB... C..1. ..... .....")) == NONE


def test_without_visible_food_it_wanders_to_uniform_waypoints():
    env = LBF(8, 8, num_foods=1)
    policy = partner("closest-food", env)
    _, state = env.reset(jax.random.key(0))
    state = state._replace(position=jnp.array([[3, 3], [7, 0]]), food_level=jnp.zeros(1, jnp.int32))

    def step(carry, key):
        state, memory = carry
        act_key, step_key = jax.random.split(key)
        action, memory = policy.act((), memory, View(jnp.zeros(()), state, jnp.int32(0)), act_key)
        _, after, *_ = env.step_env(step_key, state, {"agent_0": action, "agent_1": jnp.int32(NONE)})
        return (after, memory), (after.position[0], memory.cell)

    keys = jax.random.split(jax.random.key(1), 4000)
    _, (positions, waypoints) = jax.lax.scan(step, (state, policy.initial_memory(())), keys)
    moved = (np.diff(positions, axis=0) != 0).any(-1)
    assert moved.mean() > 0.95
    changed = np.append(True, (np.diff(waypoints, axis=0) != 0).any(-1)) & (waypoints[:, 0] >= 0)
    drawn_cells = np.asarray(waypoints)[changed]
    assert len(drawn_cells) > 400
    for axis in (0, 1):
        np.testing.assert_allclose(np.bincount(drawn_cells[:, axis], minlength=8) / len(drawn_cells), 1 / 8, atol=0.05)
