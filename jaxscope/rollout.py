"""Stepping environments with a learner and partners, inside one compiled program.

Two ways to fill the seats: `self_play` (the learner sits everywhere, every seat's samples train it) and `with_partners`
(the learner has one seat per environment, partners the others). Environments reset themselves; a flag says which
observations begin an episode, and it is that flag, taken before the step, that resets recurrent states here and in the
replay of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from jaxscope.agents.actor_critic import Act, RecurrentPolicy
from jaxscope.casting import Casting, Partnering, recast
from jaxscope.placement import ENVIRONMENTS
from jaxscope.population import Population
from jaxscope.types import Environment, Policy, PyTree, View


class Play(NamedTuple):
    """Games in progress: all that a rollout continues from."""

    env_state: PyTree  # [B, ...]
    obs: Float[Array, "B A *o"]
    reset: Bool[Array, " B"]  # obs begins an episode
    carry: Float[Array, "R h"]  # the learner's recurrent state; R = B * A rows in self-play, B with partners
    episode_return: Float[Array, " B"]  # team return so far
    episode_shaping: Float[Array, " B"]  # the part of it that is shaping
    episode_length: Int[Array, " B"]
    casting: Casting | None  # who sits where; None in self-play


class Trajectory(NamedTuple):
    """What a learner trains on. Rows R: every seat of every environment in self-play, else one per environment."""

    obs: Float[Array, "T R *o"]
    reset: Bool[Array, "T R"]  # obs begins an episode
    act: Act  # [T, R]
    reward: Float[Array, "T R"]  # team reward
    shaping: Float[Array, "T R"]  # the part of it that is shaping
    terminated: Bool[Array, "T R"]
    truncated: Bool[Array, "T R"]  # cut while going on: at the time limit, or because new partners are drawn
    time_limit: Bool[Array, "T R"]  # cut at the time limit
    next_value: Float[Array, "T R"]  # value of the observation after the step, before any reset
    carry: Float[Array, "R h"]  # recurrent state before the first step


class Episodes(NamedTuple):
    """Episodes that ended during a rollout, at the step where they did."""

    counted: Bool[Array, "T B"]  # an episode ended here, and its return may enter a mean
    team_return: Float[Array, "T B"]  # undiscounted
    shaping: Float[Array, "T B"]  # the part of it that is shaping
    length: Int[Array, "T B"]
    partner: Int[Array, "T B"]  # the partner met; 0 in self-play


class Stepped(NamedTuple):
    """One step of all environments."""

    env_state: PyTree
    obs: Array  # [B, A, *o], after any reset
    final_obs: Array  # [B, A, *o], before any reset
    reward: Float[Array, " B"]
    shaping: Float[Array, " B"]
    terminated: Bool[Array, " B"]
    truncated: Bool[Array, " B"]  # at the time limit
    reset: Bool[Array, " B"]  # obs begins an episode


def reset_envs(env: Environment, num_envs: int, key: PRNGKeyArray) -> tuple[Array, PyTree]:
    """Observations `[B, A, *o]` and states `[B, ...]` of fresh games."""

    def reset(key: PRNGKeyArray) -> tuple[Array, PyTree]:
        obs, state = env.reset(key)
        return env.by_seat(obs, state), state

    return jax.vmap(reset)(jax.random.split(key, num_envs))


def step_envs(
    env: Environment,
    state: PyTree,
    actions: Shaped[Array, "A B *a"],
    key: PRNGKeyArray,
    cut: Bool[Array, ""] | bool = False,
) -> Stepped:
    """Step B environments with the actions of all seats; those that end are reset, and with `cut` all others too."""

    def step(key: PRNGKeyArray, state: PyTree, actions: dict[str, Array]) -> Stepped:
        step_key, reset_key = jax.random.split(key)
        _, after, rewards, dones, info = env.step_env(step_key, state, actions)
        fresh_obs, fresh = env.reset(reset_key)
        reset = dones["__all__"] | cut
        final_obs = env.by_seat(info["final_observation"], after)
        obs = jnp.where(reset, env.by_seat(fresh_obs, fresh), final_obs)
        after = jax.tree.map(lambda new, old: jnp.where(reset, new, old), fresh, after)
        reward, shaping = env.team_reward(rewards), env.team_shaping(info)
        return Stepped(after, obs, final_obs, reward, shaping, info["terminated"], info["truncated"], reset)

    named = dict(zip(env.agents, actions, strict=True))
    return jax.vmap(step)(jax.random.split(key, actions.shape[1]), state, named)


def begin_self_play(env: Environment, policy: RecurrentPolicy, num_envs: int, key: PRNGKeyArray) -> Play:
    """Fresh games with the learner in every seat."""
    obs, state = reset_envs(env, num_envs, key)
    return _fresh(obs, state, policy.initial_carry(env.num_agents * num_envs), None)


def begin_with_partners(
    env: Environment,
    policy: RecurrentPolicy,
    policies: tuple[Policy, ...],
    population: Population,
    partnering: Partnering,
    num_envs: int,
    key: PRNGKeyArray,
) -> Play:
    """Fresh games with newly drawn partners and seats."""
    env_key, casting_key = jax.random.split(key)
    obs, state = reset_envs(env, num_envs, env_key)
    casting = recast(policies, population, partnering, env.num_agents, num_envs, casting_key)
    return _fresh(obs, state, policy.initial_carry(num_envs), casting)


def _fresh(obs: Array, state: PyTree, carry: Array, casting: Casting | None) -> Play:
    num_envs = obs.shape[0]
    return Play(
        env_state=state,
        obs=obs,
        reset=jnp.ones(num_envs, bool),
        carry=carry,
        episode_return=jnp.zeros(num_envs),
        episode_shaping=jnp.zeros(num_envs),
        episode_length=jnp.zeros(num_envs, jnp.int32),
        casting=casting,
    )


def partition(play: Play) -> Play:
    """Which axes of `play` hold environments."""
    whole: Any = PartitionSpec()
    first: Any = PartitionSpec(ENVIRONMENTS)
    second: Any = PartitionSpec(None, ENVIRONMENTS)
    casting = None
    if play.casting is not None:
        casting = Casting(partner=whole, seat=first, memory=second, countable=first)
    return Play(
        env_state=first,
        obs=first,
        reset=first,
        carry=first,
        episode_return=first,
        episode_shaping=first,
        episode_length=first,
        casting=casting,
    )


def self_play(
    env: Environment, policy: RecurrentPolicy, params: PyTree, play: Play, num_steps: int, key: PRNGKeyArray
) -> tuple[Play, Trajectory, Episodes]:
    """`num_steps` steps with the learner in every seat."""
    seats = env.num_agents

    def step(play: Play, time: Int[Array, ""]) -> tuple[Play, tuple]:
        act_key, env_key = jax.random.split(jax.random.fold_in(key, time))
        obs = rearrange(play.obs, "b a ... -> (b a) ...")
        reset = jnp.repeat(play.reset, seats)
        carry, act = policy.step(params, play.carry, obs, reset, act_key)
        actions = rearrange(act.action, "(b a) ... -> a b ...", a=seats)
        stepped = step_envs(env, play.env_state, actions, env_key)
        after, episodes = _account(play, stepped, carry, jnp.ones_like(play.reset), jnp.zeros_like(play.episode_length))
        final_obs = rearrange(stepped.final_obs, "b a ... -> (b a) ...")
        rows = lambda x: jnp.repeat(x, seats)  # noqa: E731  # [B] -> [B * A]
        return after, (
            _Step(
                obs,
                reset,
                act,
                rows(stepped.reward),
                rows(stepped.shaping),
                rows(stepped.terminated),
                rows(stepped.truncated),
                rows(stepped.truncated),
            ),
            _Ahead(final_obs, carry),
            episodes,
        )

    after, (steps, ahead, episodes) = jax.lax.scan(step, play, jnp.arange(num_steps))
    last_obs = rearrange(after.obs, "b a ... -> (b a) ...")
    return after, _trajectory(env, policy, params, play, after, steps, ahead, last_obs), episodes


def with_partners(
    env: Environment,
    policy: RecurrentPolicy,
    policies: tuple[Policy, ...],
    params: PyTree,
    population: Population,
    partnering: Partnering,
    play: Play,
    num_steps: int,
    key: PRNGKeyArray,
    closing: Bool[Array, ""] | bool = False,
) -> tuple[Play, Trajectory, Episodes]:
    """`num_steps` steps with the learner in one seat per environment and partners in the others.

    Args:
        closing: new partners are drawn after this rollout, so games still running are truncated (and bootstrapped), and
            all begin anew.
    """
    assert play.casting is not None
    frozen = partnering.acting(policies, population, play.casting)
    redraw = partnering.redrawing(population, env.num_agents)

    def step(play: Play, time: Int[Array, ""]) -> tuple[Play, tuple]:
        act_key, partner_key, env_key, draw_key = jax.random.split(jax.random.fold_in(key, time), 4)
        casting = play.casting
        assert casting is not None
        obs = _own_rows(play.obs, casting.seat)
        carry, act = policy.step(params, play.carry, obs, play.reset, act_key)
        actions, casting = _partner_actions(frozen, play, casting, act.action, partner_key)
        stepped = step_envs(env, play.env_state, actions, env_key, closing & (time == num_steps - 1))
        truncated = stepped.truncated | (stepped.reset & ~stepped.terminated)
        after, episodes = _account(
            play, stepped, carry, casting.countable, partnering.ids(casting, play.reset.shape[0])
        )
        after = after._replace(casting=redraw(casting, after.reset, draw_key))
        return after, (
            _Step(
                obs,
                play.reset,
                act,
                stepped.reward,
                stepped.shaping,
                stepped.terminated,
                truncated,
                stepped.truncated,
            ),
            _Ahead(_own_rows(stepped.final_obs, casting.seat), carry),
            episodes,
        )

    after, (steps, ahead, episodes) = jax.lax.scan(step, play, jnp.arange(num_steps))
    assert after.casting is not None
    last_obs = _own_rows(after.obs, after.casting.seat)
    return after, _trajectory(env, policy, params, play, after, steps, ahead, last_obs), episodes


class _Step(NamedTuple):
    obs: Array
    reset: Array
    act: Act
    reward: Array
    shaping: Array
    terminated: Array
    truncated: Array
    time_limit: Array


class _Ahead(NamedTuple):
    """What the value after a step is computed from, where the step cut an episode."""

    final_obs: Array
    carry: Array


def _account(
    play: Play, stepped: Stepped, carry: Array, countable: Bool[Array, " B"], partner: Int[Array, " B"]
) -> tuple[Play, Episodes]:
    """The games after a step, and the episodes that ended with it."""
    ended = stepped.terminated | stepped.truncated
    team_return = play.episode_return + stepped.reward
    shaping = play.episode_shaping + stepped.shaping
    length = play.episode_length + 1
    after = play._replace(
        env_state=stepped.env_state,
        obs=stepped.obs,
        reset=stepped.reset,
        carry=carry,
        episode_return=jnp.where(stepped.reset, 0.0, team_return),
        episode_shaping=jnp.where(stepped.reset, 0.0, shaping),
        episode_length=jnp.where(stepped.reset, 0, length),
    )
    return after, Episodes(ended & countable, team_return, shaping, length, partner)


def _own_rows(by_seat: Float[Array, "B A *o"], seat: Int[Array, " B"]) -> Float[Array, "B ..."]:
    """The entry of each environment's own seat."""
    rows = by_seat[:, 0]
    for index in range(1, by_seat.shape[1]):
        here = (seat == index).reshape((-1,) + (1,) * (rows.ndim - 1))
        rows = jnp.where(here, by_seat[:, index], rows)
    return rows


def _partner_actions(
    acting: Callable, play: Play, casting: Casting, own: Shaped[Array, "B ..."], key: PRNGKeyArray
) -> tuple[Shaped[Array, "A B *a"], Casting]:
    """Everybody's actions `[A, B]`: the learner's in its seat, the partners' in the seats after it, cyclically."""
    num_envs, seats = play.obs.shape[:2]
    order = (casting.seat[None, :] + jnp.arange(1, seats)[:, None]) % seats  # [P, B], P = A - 1
    obs = jnp.stack([_own_rows(play.obs, seat) for seat in order])
    keys = jax.random.split(key, (seats - 1, num_envs))
    others, memory = acting(casting, View(obs, play.env_state, order), play.reset, keys)
    by_turn = jnp.concatenate([own[None], others])  # [A, B], the learner first
    turn = (jnp.arange(seats)[:, None] - casting.seat[None, :]) % seats
    by_env = jnp.swapaxes(by_turn, 0, 1)  # [B, A, ...]
    actions = jnp.stack([_own_rows(by_env, t) for t in turn])
    return actions, casting._replace(memory=memory)


def _trajectory(
    env: Environment,
    policy: RecurrentPolicy,
    params: PyTree,
    play: Play,
    after: Play,
    steps: _Step,
    ahead: _Ahead,
    last_obs: Array,
) -> Trajectory:
    last_value = policy.value(params, after.carry, last_obs)
    following = jnp.concatenate([steps.act.value[1:], last_value[None]])
    next_value = _values_at_cuts(env, policy, params, steps.truncated, ahead, following)
    return Trajectory(**steps._asdict(), next_value=next_value, carry=play.carry)


def _values_at_cuts(
    env: Environment,
    policy: RecurrentPolicy,
    params: PyTree,
    truncated: Bool[Array, "T R"],
    ahead: _Ahead,
    following: Float[Array, "T R"],
) -> Float[Array, "T R"]:
    """`following` with the value of the final observation in place where an episode was cut.

    Time limits lie a horizon apart, so only a few steps of a row can be cuts: the critic runs on those alone.
    """
    num_steps = truncated.shape[0]
    nth = jnp.cumsum(truncated, axis=0) - 1
    times = jnp.arange(num_steps)[:, None]

    def put(index: Int[Array, ""], following: Array) -> Array:
        here = truncated & (nth == index)
        time = jnp.sum(jnp.where(here, times, 0), axis=0)  # [R]
        at_time = lambda x: jnp.take_along_axis(x, time.reshape((1, -1) + (1,) * (x.ndim - 2)), axis=0)[0]  # noqa: E731
        value = policy.value(params, at_time(ahead.carry), at_time(ahead.final_obs))
        return jnp.where(here, value[None], following)

    # One cut at the latest after the first horizon, one per horizon from there, one when new partners are drawn.
    return jax.lax.fori_loop(0, 2 + (num_steps - 1) // env.horizon, put, following)
