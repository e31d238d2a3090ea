"""Foraging games for tests of scripted partners: drawn by hand, or played by all pairs in one compiled program."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxscope.agents.scripted import partner, partner_names
from jaxscope.envs.lbf import LBF, LOAD, MOVES, State, parse
from jaxscope.types import View

NAMES = partner_names("lbf")
OPPONENTS = ("closest-food", "stay", "random")
GAMES_PER_PAIR = 32
# Programs that hold every partner run once, for a second: what counts is how long they take to compile.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


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


def act(name, game, memory, key):
    """What player A does; not compiled, because every drawing has its own shapes."""
    env, state = game
    with jax.disable_jit():
        return partner(name, env).act((), memory, View(jnp.zeros(()), state, jnp.int32(0)), key)


def actions_while(name, games, seed=0):
    """What player A does in the given states one after the other, from the start of an episode."""
    memory = partner(name, games[0][0]).initial_memory(())
    actions = []
    for step, game in enumerate(games):
        action, memory = act(name, game, memory, jax.random.key(seed + step))
        actions.append(int(action))
    return actions


def first_action(name, game, seed=0):
    """What player A does at the start of an episode."""
    return actions_while(name, [game], seed)[0]


def walk(name, env, start, steps):
    """The cells that player A visits in a grid where there is no food and the others stay in the last row."""
    position = jnp.array([start, *((env.rows - 1, env.cols - seat) for seat in range(1, env.num_agents))])
    food = jnp.zeros(env.num_foods, jnp.int32)
    state = State(
        position, jnp.ones(env.num_agents, int), many(jnp.array([-1, -1]), env.num_foods), food, food[0], food[0]
    )
    memory, visited = partner(name, env).initial_memory(()), []
    for step in range(steps):
        action, memory = act(name, (env, state), memory, jax.random.key(step))
        state = state._replace(position=state.position.at[0].add(MOVES[int(action)]))
        visited.append(tuple(state.position[0].tolist()))
    return visited


def act_all(env, memories, state, seat, key):
    """What every partner would do on `seat`: actions by partner `[S]`, and their memories.

    All get the same randomness, so that they differ only where their rules do.
    """
    view = View(jnp.zeros(()), state, seat)
    acted = [
        partner(name, env).act((), memory, view, jax.random.clone(key))
        for name, memory in zip(NAMES, memories, strict=True)
    ]
    return jnp.stack([action for action, _ in acted]), [memory for _, memory in acted]


def first_memories(env):
    return [partner(name, env).initial_memory(()) for name in NAMES]


def many(tree, *lead):
    """Copies along new leading axes."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*lead, *leaf.shape)), tree)


def scattered(env, batch, seed=0):
    """States `[B]` with players and foods on random cells, also where a reset would not put them."""
    rng = np.random.default_rng(seed)
    things = env.num_agents + env.num_foods
    cells = np.stack([rng.permutation(env.rows * env.cols)[:things] for _ in range(batch)]).astype(np.int32)
    food = np.sort(cells[:, env.num_agents :])
    food_level = rng.integers(0, 4, food.shape, dtype=np.int32)
    return State(
        position=jnp.array(np.stack(np.divmod(cells[:, : env.num_agents], env.cols), -1)),
        level=jnp.array(rng.integers(1, 3, (batch, env.num_agents), dtype=np.int32)),
        food_position=jnp.array(np.stack(np.divmod(food, env.cols), -1)),
        food_level=jnp.array(food_level),
        total_level=jnp.array(food_level.sum(-1, dtype=np.int32)),
        time=jnp.zeros(batch, jnp.int32),
    )


class Games(NamedTuple):
    """Whole episodes: states before each step and what was done in them. NumPy arrays once played."""

    states: Any  # State, leaves [T, B, ...]
    choices: Any  # [T, B, A, S]: what every partner would have done, with the memory of this game
    actions: Any  # [T, B, A]: what was done
    events: dict[str, Any]  # [T, B, A]


@functools.cache
def tournament(variant):
    """All partners, each in seat 0 beside each of the opponents, `B = S * opponents * games` games."""
    env = parse(variant)
    seats = jnp.arange(env.num_agents)
    pairs = [[NAMES.index(a), *[NAMES.index(b)] * (env.num_agents - 1)] for a in NAMES for b in OPPONENTS]
    playing = jnp.repeat(jnp.array(pairs), GAMES_PER_PAIR, axis=0)
    batch = len(playing)

    def step_one(state, memories, playing, key):
        act_key, step_key = jax.random.split(key)
        act_keys = jax.random.split(act_key, env.num_agents)
        one_seat = functools.partial(act_all, env)
        choices, memories = jax.vmap(one_seat, in_axes=(0, None, 0, 0))(memories, state, seats, act_keys)
        actions = jnp.take_along_axis(choices, playing[:, None], axis=1)[:, 0]
        _, after, _, _, info = env.step_env(step_key, state, dict(zip(env.agents, actions, strict=True)))
        return (after, memories), Games(state, choices, actions, info["events"])

    def step(carry, key):
        return jax.vmap(step_one)(carry[0], carry[1], playing, jax.random.split(key, batch))

    @functools.partial(jax.jit, compiler_options=QUICK_COMPILE)
    def run(key):
        reset_key, play_key = jax.random.split(key)
        _, states = jax.vmap(env.reset)(jax.random.split(reset_key, batch))
        start = (states, many(first_memories(env), batch, env.num_agents))
        return jax.lax.scan(step, start, jax.random.split(play_key, env.horizon))[1]

    return jax.tree.map(np.asarray, run(jax.random.key(3)))


def play(name, other="closest-food", variant="8x8-2p-3f"):
    """The games of one pair, `name` in seat 0."""
    first = GAMES_PER_PAIR * (NAMES.index(name) * len(OPPONENTS) + OPPONENTS.index(other))
    return jax.tree.map(lambda leaf: leaf[:, first : first + GAMES_PER_PAIR], tournament(variant))


def steps_between(cells, cell):
    """Manhattan distances, any leading axes."""
    return np.abs(cells - cell).sum(-1)


def apart(games):
    """Distance between the first two players `[T, B]`."""
    return steps_between(games.states.position[:, :, 0], games.states.position[:, :, 1])


def beside(games, seat=0):
    """Foods that the player stands beside `[T, B, F]`."""
    near = steps_between(games.states.food_position, games.states.position[:, :, seat, None]) == 1
    return near & (games.states.food_level > 0)


def loads(games):
    """Where seat 0 loads beside food that is there `[T, B]`."""
    return (games.actions[..., 0] == LOAD) & beside(games).any(-1)


def shares_food(games):
    """Whether the first two players stand beside the same food `[T, B]`."""
    return (beside(games, 0) & beside(games, 1)).any(-1)
