"""Rendezvous and hunting games for tests of scripted partners: made by hand, or played by all in one program."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from point_mass_reference import arrays

import jaxscope
from jaxscope.agents.scripted import partner, partner_names
from jaxscope.types import View

FAMILIES = ("pmr", "predator_prey")
NAMES = {family: partner_names(family) for family in FAMILIES}
OPPONENTS = {"pmr": ("closest-landmark", "stay", "random"), "predator_prey": ("closest-prey", "stay", "random")}
GAMES_PER_PAIR = 16
# Programs that hold every partner run once, for a second: what counts is how long they take to compile.
QUICK_COMPILE = {"xla_backend_optimization_level": 0}


def act_all(env, memories, state, seat, key):
    """What every partner would do on `seat`: thrusts by partner `[S, 2]`, and their memories.

    All get the same randomness, so that they differ only where their rules do.
    """
    view = View(jnp.zeros(()), state, seat)
    acted = [
        partner(name, env).act((), memory, view, jax.random.clone(key))
        for name, memory in zip(partner_names(env.name), memories, strict=True)
    ]
    return jnp.stack([action for action, _ in acted]), [memory for _, memory in acted]


def first_memories(env):
    return [partner(name, env).initial_memory(()) for name in partner_names(env.name)]


def many(tree, *lead):
    """Copies along new leading axes."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*lead, *leaf.shape)), tree)


class Games(NamedTuple):
    """Whole episodes: what was before each step and what was done in it. NumPy arrays once played."""

    states: Any  # State, leaves [T, B]
    choices: Any  # [T, B, A, S, 2]: what every partner would have done, with the memory of this game
    actions: Any  # [T, B, A, 2]: what was done
    events: dict[str, Any]  # [T, B, A]
    running: Any  # [T, B]: the game was not over before

    @property
    def position(self) -> np.ndarray:
        """Of the two agents, `[T, B, A, 2]`."""
        return arrays(self.states.agents if hasattr(self.states, "agents") else self.states.predators)[0]


@functools.cache
def tournament(family):
    """All partners, each in seat 0 beside each of the opponents, `B = S * opponents * games` games."""
    env, names = jaxscope.make(family), NAMES[family]
    pairs = [[names.index(a), names.index(b)] for a in names for b in OPPONENTS[family]]
    playing = jnp.repeat(jnp.array(pairs), GAMES_PER_PAIR, axis=0)
    batch = len(playing)

    def step_one(state, memories, running, playing, key):
        act_keys = jax.random.split(key, env.num_agents)
        one_seat = functools.partial(act_all, env)
        choices, memories = jax.vmap(one_seat, in_axes=(0, None, 0, 0))(memories, state, jnp.arange(2), act_keys)
        actions = jnp.take_along_axis(choices, playing[:, None, None], axis=1)[:, 0]
        unused = jax.random.key(0)
        _, after, _, dones, info = env.step_env(unused, state, dict(zip(env.agents, actions, strict=True)))
        return (after, memories, running & ~dones["__all__"]), Games(state, choices, actions, info["events"], running)

    def step(carry, time):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(4), time), batch)
        state, memories, running = carry
        return jax.vmap(step_one)(state, memories, running, playing, keys)

    @functools.partial(jax.jit, compiler_options=QUICK_COMPILE)
    def run(key):
        _, states = jax.vmap(env.reset)(jax.random.split(key, batch))
        start = (states, many(first_memories(env), batch, env.num_agents), jnp.ones(batch, bool))
        return jax.lax.scan(step, start, jnp.arange(env.horizon))[1]

    return jax.tree.map(np.asarray, run(jax.random.key(3)))


def play(family, name, other=None):
    """The games of one pair, `name` in seat 0; the opponent is the first by default."""
    opponents = OPPONENTS[family]
    first = NAMES[family].index(name) * len(opponents) + opponents.index(other or opponents[0])
    rows = slice(GAMES_PER_PAIR * first, GAMES_PER_PAIR * (first + 1))
    return jax.tree.map(lambda leaf: leaf[:, rows], tournament(family))


@functools.cache
def _acting(family, name, env):
    policy = partner(name, env)
    act = lambda memory, state, key: policy.act((), memory, View(jnp.zeros(()), state, jnp.int32(0)), key)  # noqa: E731
    return policy, jax.jit(act, compiler_options=QUICK_COMPILE)


def thrusts_while(name, env, states, seed=0):
    """What the first agent does in the given states one after the other, from the start of an episode: `[n, 2]`."""
    policy, act = _acting(env.name, name, env)
    memory, thrusts = policy.initial_memory(()), []
    for step, state in enumerate(states):
        action, memory = act(memory, state, jax.random.key(seed + step))
        thrusts.append(np.asarray(action))
    return np.array(thrusts)


def returns_of(env, rows, cols, episodes):
    """Team returns `[len(rows), len(cols), episodes]` of all pairs of scripted partners."""
    from jaxscope.evaluation.play import play_teams
    from jaxscope.panel import Panel

    panel = Panel.scripted(env, list(dict.fromkeys([*rows, *cols])))
    teams = jnp.array([[panel.names.index(row), panel.names.index(col)] for row in rows for col in cols])
    outcome = play_teams(env, panel.policies, panel.population, teams, episodes, jax.random.key(0))
    return np.asarray(outcome.team_return).reshape(len(rows), len(cols), episodes)


def assert_means_agree(returns, published, published_episodes):
    """Within 3.5 standard errors of the difference of two means of the same games."""
    variance = returns.var(-1)
    error = np.sqrt(variance / returns.shape[-1] + variance / published_episodes)
    # Published figures have two digits, and a pair that always succeeds has no variance.
    assert (np.abs(returns.mean(-1) - published) < 3.5 * error + 0.01).all(), (returns.mean(-1), error)
