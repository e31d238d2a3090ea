"""Playing out whole episodes of given teams: the one compiled function behind every evaluation."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxscope.population import Population
from jaxscope.types import Environment, Policy, PyTree, View


class Outcome(NamedTuple):
    """Results of C teams in E episodes each."""

    team_return: Float[Array, "C E"]  # undiscounted
    shaping: Float[Array, "C E"]  # the part of it that is shaping
    length: Int[Array, "C E"]  # steps
    events: dict[str, Float[Array, "C E A"]]  # counts per seat over the episode


class _Game(NamedTuple):
    """E episodes of one team under way."""

    env_state: PyTree  # [E, ...]
    obs: Array  # [E, A, *o]
    memory: tuple[PyTree, ...]  # per kind, [A, E, ...]
    running: Bool[Array, " E"]
    outcome: Outcome  # without the C axis
    time: Int[Array, ""]


@functools.partial(jax.jit, static_argnums=(0, 1, 4))
def play_teams(
    env: Environment,
    policies: tuple[Policy, ...],
    population: Population,
    teams: Int[Array, "C A"],
    episodes: int,
    key: PRNGKeyArray,
) -> Outcome:
    """Play `episodes` episodes of every team, to the end of the game or the time limit.

    Teams are played one after the other, each in one batch, so memory does not grow with their number, and one program
    serves any members of the population. All teams meet the same first states, and the same
    noise in their actions.

    Args:
        teams: the member in each seat.
    """
    reset_key, step_key = jax.random.split(key)

    def play_team(team: Int[Array, " A"]) -> Outcome:
        game = _begin(env, policies, population, team, episodes, jax.random.clone(reset_key))

        def step(game: _Game) -> _Game:
            return _step(env, policies, population, team, game, jax.random.fold_in(step_key, game.time))

        def goes_on(game: _Game) -> Bool[Array, ""]:
            return jnp.any(game.running) & (game.time < env.horizon)

        return jax.lax.while_loop(goes_on, step, game).outcome

    return jax.lax.map(play_team, teams)


def _begin(env, policies, population, team, episodes: int, key) -> _Game:
    obs, state = jax.vmap(env.reset)(jax.random.split(key, episodes))

    def start(kind: int, member: Int[Array, ""]) -> PyTree:
        memory = policies[kind].initial_memory(population.gather(member, kind))
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (episodes, *jnp.shape(leaf))), memory)

    memory = tuple(
        jax.vmap(functools.partial(start, kind), axis_size=env.num_agents)(team) for kind in range(len(policies))
    )
    counts = jax.eval_shape(_events_of(env), key, jax.tree.map(lambda leaf: leaf[0], state))
    outcome = Outcome(
        team_return=jnp.zeros(episodes),
        shaping=jnp.zeros(episodes),
        length=jnp.zeros(episodes, jnp.int32),
        events={name: jnp.zeros((episodes, env.num_agents)) for name in counts},
    )
    stacked = jax.vmap(env.by_seat)(obs, state)
    return _Game(state, stacked, memory, jnp.ones(episodes, bool), outcome, jnp.zeros((), jnp.int32))


def _events_of(env: Environment):
    def events(key: PRNGKeyArray, state: PyTree):
        action = jnp.zeros(env.action_space().shape, env.action_space().dtype)
        return env.step_env(key, state, dict.fromkeys(env.agents, action))[4]["events"]

    return events


def _step(env, policies, population, team, game: _Game, key) -> _Game:
    episodes = game.running.shape[0]
    env_key, seats_key = jax.random.split(key)

    def act(seat: Int[Array, ""]) -> tuple[Array, tuple[PyTree, ...]]:
        view = View(game.obs[:, seat], game.env_state, jnp.full(episodes, seat))
        keys = jax.random.split(jax.random.fold_in(seats_key, seat), episodes)
        memory = jax.tree.map(lambda leaf: leaf[seat], game.memory)
        return _act(policies, population, team[seat], memory, view, keys)

    # One seat after the other, so that every policy is compiled once and not once per seat.
    by_seat, memory = jax.lax.map(act, jnp.arange(env.num_agents))
    actions = dict(zip(env.agents, by_seat, strict=True))
    keys = jax.random.split(env_key, episodes)
    obs, state, rewards, dones, info = jax.vmap(env.step_env)(keys, game.env_state, actions)
    counted = game.running  # a finished game is stepped on with the rest, and ignored
    before = game.outcome
    outcome = Outcome(
        team_return=before.team_return + jnp.where(counted, env.team_reward(rewards), 0.0),
        shaping=before.shaping + jnp.where(counted, jax.vmap(env.team_shaping)(info), 0.0),
        length=before.length + counted,
        events={
            name: total + jnp.where(counted[:, None], info["events"][name], 0.0)
            for name, total in before.events.items()
        },
    )
    stacked = jax.vmap(env.by_seat)(obs, state)
    return _Game(state, stacked, memory, counted & ~dones["__all__"], outcome, game.time + 1)


def _act(policies, population: Population, member, memory, view: View, keys):
    """Actions `[E]` of one member in one seat; only its own kind is computed."""

    def act_as(kind: int):
        def act(memory, view, keys):
            params = population.gather(member, kind)
            action, own = jax.vmap(policies[kind].act, in_axes=(None, 0, 0, 0))(params, memory[kind], view, keys)
            return action, (*memory[:kind], own, *memory[kind + 1 :])

        return act

    branches = [act_as(kind) for kind in range(len(policies))]
    return jax.lax.switch(population.kind(member), branches, memory, view, keys)


@functools.partial(jax.jit, static_argnums=(0, 1))
def record(
    env: Environment,
    policies: tuple[Policy, ...],
    population: Population,
    team: Int[Array, " A"],
    key: PRNGKeyArray,
) -> tuple[PyTree, Float[Array, " T"], Int[Array, ""]]:
    """One episode to look at: states `[T + 1, ...]`, team rewards `[T]`, the number of steps; T is the horizon."""
    reset_key, step_key = jax.random.split(key)
    game = _begin(env, policies, population, team, 1, reset_key)

    def step(game: _Game, time):
        after = _step(env, policies, population, team, game, jax.random.fold_in(step_key, time))
        reward = after.outcome.team_return - game.outcome.team_return
        return after, (jax.tree.map(lambda leaf: leaf[0], after.env_state), reward[0])

    last, (states, rewards) = jax.lax.scan(step, game, jnp.arange(env.horizon))
    first = jax.tree.map(lambda leaf: leaf[:1], game.env_state)
    states = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first, states)
    return states, rewards, last.outcome.length[0]
