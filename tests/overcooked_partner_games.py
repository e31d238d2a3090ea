"""Kitchen games for tests of scripted partners, played by all pairs in one compiled program per size of kitchen."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxscope.agents.scripted import partner, partner_names
from jaxscope.envs.overcooked import Overcooked, State, objects, parse
from jaxscope.types import View

NAMES = partner_names("overcooked")
#: Kitchens, by the environment that holds them: two of one size are played in one program.
LAYOUTS = {
    "large_room": ("large_room", 0),
    "cramped_room": ("cramped_room", 0),
    "coordination_ring": ("coordination_ring+forced_coordination", 0),
    "forced_coordination": ("coordination_ring+forced_coordination", 1),
}
OPPONENTS = ("greedy", "fill-only", "fill-and-start", "fetch-and-serve", "stay", "itself")
#: First states beside an idle chef: pots complete but not started; soups done and dishes on counters.
PREPARED = ("complete", "ready")
EXTRA_PAIRS = (("left-worker", "right-worker"), ("right-worker", "left-worker"))
GAMES_PER_PAIR = 2
# Programs that hold every partner run once, for a second: what counts is how long they take to compile.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


class Games(NamedTuple):
    """Whole episodes: states before each step and what was done in them. NumPy arrays once played."""

    states: Any  # State, leaves [T, B, ...]
    choices: Any  # [T, B, A, S]: what every partner would have done, with the memory of this game
    actions: Any  # [T, B, A]: what was done
    events: dict[str, Any]  # [T, B, A]
    reward: Any  # [T, B]: of the team
    moved: Any  # [T, B]: some chef or object changed its place


def act_all(env, memories, state, seat, key, names=NAMES):
    """What each of the partners would do on `seat`: actions by partner `[S]`, and their memories.

    All get the same randomness, so that they differ only where their rules do, and those that ask for the same are
    given one answer.
    """
    view = View(jnp.zeros(()), state, seat)
    reply = functools.cache(lambda request: request.answer(env, view))
    acted = [
        partner(name, env).turn(memory, view, jax.random.clone(key), reply)
        for name, memory in zip(names, memories, strict=True)
    ]
    return jnp.stack([action for action, _ in acted]), [memory for _, memory in acted]


def first_memories(env, names=NAMES):
    return [partner(name, env).initial_memory(()) for name in names]


def many(tree, *lead):
    """Copies along new leading axes."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*lead, *leaf.shape)), tree)


def kitchen_of(layout) -> Overcooked:
    """The environment of one kitchen alone."""
    return parse(layout)


def prepared(layout, how) -> State:
    """The first state of a kitchen, with its pots and counters prepared; its number as in `LAYOUTS`."""
    env = kitchen_of(layout)
    _, state = env.reset(jax.random.key(0))
    contents, rows = np.array(state.contents), env.kitchen.rows
    for x, y in env.kitchen.cells():
        here = x * env.height + y
        if rows[y][x] == "P" and how != "fresh":
            contents[here] = objects.soup(3, 0) if how == "ready" else objects.idle(3, 0)
        inner = 0 < y < env.height - 1 or 0 < x < env.width - 1
        if rows[y][x] == "X" and how == "ready" and inner:
            contents[here] = objects.DISH
    return state._replace(contents=jnp.array(contents), layout=jnp.int32(LAYOUTS[layout][1]))


@functools.cache
def games_of(layout):
    """What is played in each kitchen: the name in seat 0, the name in seat 1, and the first state."""
    pairs = [(name, name if other == "itself" else other, "fresh") for name in NAMES for other in OPPONENTS]
    pairs += [(name, "stay", how) for name in NAMES for how in PREPARED]
    return [*pairs, *((a, b, "fresh") for a, b in EXTRA_PAIRS)]


@functools.cache
def tournament(variant):
    """All games of all kitchens of one environment, `GAMES_PER_PAIR` each, in the order of the kitchens."""
    env = parse(variant)
    layouts = [layout for layout, (name, _) in LAYOUTS.items() if name == variant]
    games = [(layout, *game) for layout in layouts for game in games_of(layout)]
    starts = {(layout, how): prepared(layout, how) for layout in layouts for how in ("fresh", *PREPARED)}
    states = [starts[layout, how] for layout, _, _, how in games for _ in range(GAMES_PER_PAIR)]
    first = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    seats = [[NAMES.index(a), NAMES.index(b)] for _, a, b, _ in games]
    playing = jnp.repeat(jnp.array(seats), GAMES_PER_PAIR, axis=0)
    return episodes(env, NAMES, first, playing)


def episodes(env, names, first, playing) -> Games:
    """Games from the states `first`, leaves `[B, ...]`; `playing[b, seat]` is an index into `names`."""
    batch = len(playing)

    def step_one(state, memories, playing, key):
        one_seat = functools.partial(act_all, env, names=names)
        act_keys = jax.random.split(key, env.num_agents)
        choices, memories = jax.vmap(one_seat, in_axes=(0, None, 0, 0))(
            memories, state, jnp.arange(env.num_agents), act_keys
        )
        actions = jnp.take_along_axis(choices, playing[:, None], axis=1)[:, 0]
        unused = jax.random.key(0)
        _, after, rewards, _, info = env.step_env(unused, state, dict(zip(env.agents, actions, strict=True)))
        watched = [(getattr(after, leaf), getattr(state, leaf)) for leaf in ("cell", "held", "contents")]
        moved = ~functools.reduce(jnp.logical_and, [jnp.all(new == old) for new, old in watched])
        choices = choices.astype(jnp.int8)
        return (after, memories), Games(state, choices, actions, info["events"], env.team_reward(rewards), moved)

    def step(carry, key):
        return jax.vmap(step_one)(carry[0], carry[1], playing, jax.random.split(key, batch))

    @functools.partial(jax.jit, compiler_options=QUICK_COMPILE)
    def run(first, key):
        start = (first, many(first_memories(env, names), batch, env.num_agents))
        return jax.lax.scan(step, start, jax.random.split(key, env.horizon))[1]

    return jax.tree.map(np.asarray, run(first, jax.random.key(0)))


def play(name, other="greedy", layout="large_room", start="fresh") -> Games:
    """The games of one pair in one kitchen, `name` in seat 0."""
    variant, number = LAYOUTS[layout]
    games = games_of(layout)
    index = number * len(games) + games.index((name, name if other == "itself" else other, start))
    return jax.tree.map(lambda leaf: leaf[:, GAMES_PER_PAIR * index :][:, :GAMES_PER_PAIR], tournament(variant))


def count(games, event, seat=0):
    """How often an event happened to a seat, by game `[B]`."""
    return games.events[event][..., seat].sum(0)


def total(games, events, seat=0):
    """How often any of several events happened to a seat, in all games."""
    return sum(count(games, event, seat).sum() for event in events)


def started(states):
    """Which cells hold a pot that was started, cooking or done `[T, B, C]`; no soup may lie on a counter."""
    return objects.started_recipe(states.contents) > 0


def faced(env, games, seat=0):
    """(x, y) of the tile in front of a seat, each `[T, B]`."""
    cell, turned = games.states.cell[..., seat], games.states.orientation[..., seat]
    dx, dy = np.array([0, 0, 1, -1])[turned], np.array([-1, 1, 0, 0])[turned]
    return cell // env.height + dx, cell % env.height + dy


def longest(flags):
    """The longest run of true flags along the first axis, over all games."""
    run, most = np.zeros(flags.shape[1:], int), 0
    for flag in flags:
        run = np.where(flag, run + 1, 0)
        most = max(most, run.max())
    return most
