"""JaxMARL's environments as ours, and ours as JaxMARL's.

This module alone imports JaxMARL, which takes seconds and prints lines; it is imported when it is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from jaxscope import options_in_names, registry
from jaxscope._jaxmarl_import import (
    MAP_NAME_TO_SCENARIO,
    SMAX,
    HeuristicEnemySMAX,
    LearnedPolicyEnemySMAX,
    MultiAgentEnv,
    SimpleMPE,
    jaxmarl,
    overcooked_layouts,
    spaces,
)
from jaxscope.spaces import Box, Discrete, Space
from jaxscope.types import Actions, Environment, Observations, PyTree

#: These look at the step counter before they raise it, so they end one step after their `max_steps`.
ENDS_ONE_STEP_LATE = (SimpleMPE, SMAX, HeuristicEnemySMAX, LearnedPolicyEnemySMAX)

#: Options whose values are objects that JaxMARL keeps by name: here they are given by that name.
NAMED_VALUES = {
    ("overcooked", "layout"): overcooked_layouts,
    ("SMAX", "scenario"): MAP_NAME_TO_SCENARIO,
    ("HeuristicEnemySMAX", "scenario"): MAP_NAME_TO_SCENARIO,
}


class State(NamedTuple):
    """A game of JaxMARL's, and its age."""

    inner: PyTree  # JaxMARL's state
    time: Int[Array, ""]  # steps taken


@dataclass(frozen=True)
class JaxMARL(Environment):
    """An environment of JaxMARL's; `from_jaxmarl` makes it and explains it."""

    environment: str
    options: tuple[tuple[str, Any], ...]
    horizon: int
    shared_reward: bool = True

    def __post_init__(self) -> None:
        limit = self._game.limit
        if not isinstance(self.horizon, int) or self.horizon < 1 or (limit is not None and self.horizon > limit):
            allowed = "at least 1" if limit is None else f"1 to {limit}, after which JaxMARL itself ends the game"
            raise ValueError(f"jaxmarl:{self.environment}: horizon = {self.horizon} must be {allowed}")

    @property
    def _game(self) -> _Game:
        return _load(self.environment, self.options)

    @property
    def name(self) -> str:
        settings = dict(self.options)
        if self.horizon != self._game.limit:
            settings["horizon"] = self.horizon
        if not self.shared_reward:
            settings["shared_reward"] = False
        return f"jaxmarl:{options_in_names.compose(self.environment, settings)}"

    @property
    def num_agents(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.agents)

    @property
    def agents(self) -> tuple[str, ...]:
        """JaxMARL's own names, in its order."""
        return self._game.agents

    def observation_space(self, agent: str | None = None) -> Box:
        del agent
        return self._game.observations

    def action_space(self, agent: str | None = None) -> Space:
        del agent
        return self._game.actions

    def reset(self, key: PRNGKeyArray) -> tuple[Observations, State]:
        with _their_habits():
            obs, inner = self._game.env.reset(key)
        return self._shown(obs), State(inner, jnp.zeros((), jnp.int32))

    def step_env(self, key: PRNGKeyArray, state: State, actions: Actions) -> tuple:
        """One step without auto-reset; numbers in JaxMARL's own `info` become events."""
        game = self._game
        with _their_habits():
            obs, inner, rewards, dones, info = game.env.step_env(key, state.inner, self._chosen(actions))
        time = state.time + 1
        over = dones["__all__"]
        by_limit = jnp.zeros((), bool) if game.limit is None else time >= game.limit
        terminated = over & ~by_limit
        cut = ~over & (time >= self.horizon)
        obs = self._shown(obs)
        infos = {
            "terminated": terminated,
            "truncated": ~terminated & (over | cut),
            "final_observation": obs,
            "events": self._events(info),
        }
        rewards = {agent: jnp.asarray(rewards[agent], jnp.float32) for agent in self.agents}
        return obs, State(inner, time), rewards, {who: dones[who] | cut for who in (*self.agents, "__all__")}, infos

    def get_obs(self, state: State) -> Observations:
        with _their_habits():
            return self._shown(self._game.env.get_obs(state.inner))

    def team_reward(self, rewards: dict[str, Array]) -> Array:
        """The agents' mean reward if it is shared (the reward itself where all are paid the same), else the sum."""
        own = [rewards[agent] for agent in self.agents]
        total = sum(own[1:], own[0])
        return total / self.num_agents if self.shared_reward else total

    def _shown(self, obs: dict[str, Array]) -> Observations:
        """The agents' observations, flattened and padded where their shapes differ."""
        if not self._game.padded:
            return {agent: obs[agent] for agent in self.agents}
        (size,) = self._game.observations.shape
        flat = {agent: obs[agent].reshape(-1) for agent in self.agents}
        dtype = self._game.observations.dtype
        return {agent: jnp.pad(row, (0, size - row.shape[0])).astype(dtype) for agent, row in flat.items()}

    def _chosen(self, actions: Actions) -> Actions:
        """The actions as JaxMARL's spaces want them."""
        theirs: dict[str, Any] = {agent: self._game.env.action_space(agent) for agent in self.agents}
        if not isinstance(self._game.actions, Discrete):
            return {agent: jnp.asarray(actions[agent], space.dtype) for agent, space in theirs.items()}
        return {agent: jnp.asarray(actions[agent] % int(space.n), space.dtype) for agent, space in theirs.items()}

    def _events(self, info: dict[str, Any]) -> dict[str, Array]:
        """What of an info is a number per agent, or one for all of them, `[A]` each."""
        events = {}
        for name, value in info.items():
            if isinstance(value, dict) and set(self.agents) <= set(value):
                value = jnp.stack([jnp.asarray(value[agent]) for agent in self.agents])
            if isinstance(value, jax.Array | np.ndarray | float | int) and jnp.shape(value) in ((), (self.num_agents,)):
                events[name] = jnp.broadcast_to(jnp.asarray(value, jnp.float32), (self.num_agents,))
        return events


def from_jaxmarl(
    name: str, *, horizon: int | None = None, shared_reward: bool | None = None, **options: Any
) -> JaxMARL:
    """JaxMARL's environment `name` on our interface; `jaxscope.make("jaxmarl:NAME", ...)` is this function.

    It keeps JaxMARL's agent names. JaxMARL says only that a game is over: at its time limit that counts as truncated,
    also where the game would have ended by itself in that very step, and before it as terminated. Observations have
    the shapes and types that JaxMARL's functions give, which are not always those it declares. Where shapes differ
    between agents, observations are flattened and padded at the end with zeros to the longest. Where agents have
    different numbers of discrete actions, all get the largest number n, and an agent with m of them does `action % m`.

    Args:
        name: as in `jaxmarl.registered_envs`, with options as in `MPE_simple_spread_v3?num_agents=2&max_steps=50` if
            any.
        horizon: steps after which unfinished games are truncated; by default (and at most) JaxMARL's own limit. It must
            be given where JaxMARL has none (hanabi).
        shared_reward: the team's reward is the mean of the agents' rewards (true, the default: each is paid what the
            team gets) or their sum. Rewards per agent are JaxMARL's either way.
        options: JaxMARL's own: numbers, strings, booleans, None or tuples of them. Overcooked's `layout` and SMAX's
            `scenario` are given by name.

    Raises:
        ValueError: there is no such environment or option, or it does not fit our interface: no time limit, agents
            without an observation array each, continuous actions that differ in shape or have several bounds.
    """
    environment, settings = options_in_names.read(name)
    own = {"horizon": horizon, "shared_reward": shared_reward}
    arguments = options | {option: value for option, value in own.items() if value is not None}
    if twice := sorted(set(settings) & set(arguments)):
        raise ValueError(f"jaxmarl:{name} says {', '.join(twice)} already, which cannot be given again")
    settings |= arguments
    for option, value in settings.items():
        if not options_in_names.is_literal(value):
            raise ValueError(
                f"jaxmarl:{environment}: {option} = {value!r} must be a number, a string, a boolean, None or a tuple"
            )
    horizon, shared_reward = settings.pop("horizon", None), settings.pop("shared_reward", True)
    theirs = tuple(sorted(settings.items()))
    horizon = _load(environment, theirs).limit if horizon is None else horizon
    if horizon is None:
        raise ValueError(f"jaxmarl:{environment}: JaxMARL sets it no time limit; give one, for example horizon=100")
    return JaxMARL(environment, theirs, horizon, bool(shared_reward))


class _Game(NamedTuple):
    """What is known of an environment of JaxMARL's once it is made."""

    env: MultiAgentEnv
    agents: tuple[str, ...]
    observations: Box
    padded: bool  # agents' observations differ in shape
    actions: Space
    limit: int | None  # steps after which JaxMARL ends every game


@functools.cache
def _load(environment: str, options: tuple[tuple[str, Any], ...]) -> _Game:
    """The environment, made once per name and options, so that equal adapters share what JaxMARL compiles for it."""
    if environment not in jaxmarl.registered_envs:
        raise ValueError(registry.unknown("JaxMARL has no environment", environment, jaxmarl.registered_envs))
    settings = {option: _value(environment, option, value) for option, value in options}
    # The arrays of its constructor must be values, also when a caller is being traced.
    with jax.ensure_compile_time_eval(), _their_habits():
        try:
            env = jaxmarl.make(environment, **settings)
        except TypeError as error:
            raise ValueError(f"JaxMARL makes no {environment} with the options {settings}: {error}") from error
    _check_options(env, environment, settings)
    with _their_habits():
        obs, _ = jax.eval_shape(env.reset, jax.random.key(0))
    if not isinstance(obs, dict) or not all(hasattr(obs.get(agent), "shape") for agent in env.agents):
        raise ValueError(f"jaxmarl:{environment} does not give every agent an array of observations under its name")
    agents = tuple(env.agents)
    observations, padded = _observations(env, [obs[agent] for agent in agents])
    return _Game(env, agents, observations, padded, _actions(env, environment), _time_limit(env, environment))


def _check_options(env: MultiAgentEnv, environment: str, settings: dict[str, Any]) -> None:
    """Refuse unknown options of the particle environments: these accept any, and ignore what they do not know."""
    if not isinstance(env, SimpleMPE):
        return
    known = {"damping", "contact_force", "contact_margin"}
    for parent in type(env).__mro__[:-2]:
        known |= set(inspect.signature(parent).parameters) - {"kwargs"}
    for option in settings:
        if option not in known:
            raise ValueError(registry.unknown(f"jaxmarl:{environment} has no option", option, sorted(known)))


def _time_limit(env: MultiAgentEnv, environment: str) -> int | None:
    if getattr(env, "auto_reset", False):
        raise ValueError(f"jaxmarl:{environment} restarts before its last observation is seen; give auto_reset=False")
    for attribute in ("max_steps", "max_episode_steps", "episode_length"):
        steps = getattr(env, attribute, None)
        if steps is not None:
            return int(steps) + isinstance(env, ENDS_ONE_STEP_LATE)
    inner, outer = getattr(env, "num_inner_steps", None), getattr(env, "num_outer_steps", None)
    return None if inner is None or outer is None else int(inner) * int(outer)


def _observations(env: MultiAgentEnv, shown: list[jax.ShapeDtypeStruct]) -> tuple[Box, bool]:
    """The one space of all agents' observations, and whether they are padded to it."""
    bounds = [_bounds(env.observation_space(agent)) for agent in env.agents]
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    integer = all(jnp.issubdtype(leaf.dtype, jnp.integer) for leaf in shown)
    if len({leaf.shape for leaf in shown}) == 1:
        return Box(low, high, shown[0].shape, integer), False
    return Box(min(low, 0.0), max(high, 0.0), (max(math.prod(leaf.shape) for leaf in shown),), integer), True


def _bounds(space: Any) -> tuple[float, float]:
    """The least and the greatest value that a declared space allows in any entry."""
    if isinstance(space, spaces.Box):
        return float(np.min(space.low)), float(np.max(space.high))
    if isinstance(space, spaces.MultiDiscrete | spaces.Discrete):
        return 0.0, float(np.max(getattr(space, "num_categories", getattr(space, "n", 1)))) - 1.0
    return -math.inf, math.inf


def _actions(env: MultiAgentEnv, environment: str) -> Space:
    """The one space of all agents' actions."""
    theirs: list[Any] = [env.action_space(agent) for agent in env.agents]
    if all(isinstance(space, spaces.Discrete) for space in theirs):
        return Discrete(max(int(space.n) for space in theirs))
    if all(isinstance(space, spaces.Box) for space in theirs) and len({space.shape for space in theirs}) == 1:
        shape = tuple(theirs[0].shape)
        lows, highs = (
            {float(x) for space in theirs for x in np.ravel(np.broadcast_to(bound(space), shape))}
            for bound in (lambda space: space.low, lambda space: space.high)
        )
        if len(lows) == len(highs) == 1:
            return Box(lows.pop(), highs.pop(), shape)
    raise ValueError(
        f"jaxmarl:{environment}: actions must be discrete, or continuous with the same shape for all agents and the "
        "same bounds for all entries"
    )


def _value(environment: str, option: str, value: Any) -> Any:
    """What JaxMARL is given for an option."""
    named = NAMED_VALUES.get((environment, option))
    if named is None or not isinstance(value, str):
        return value
    if value not in named:
        raise ValueError(registry.unknown(f"jaxmarl:{environment} has no {option}", value, named))
    return named[value]


@contextlib.contextmanager
def _their_habits() -> Iterator[None]:
    """JaxMARL relies on rank promotion and draws twice from one key, which a caller may forbid in code of its own."""
    with jax.numpy_rank_promotion("allow"), jax.debug_key_reuse(False):
        yield


def to_jaxmarl(env: Environment) -> MultiAgentEnv:
    """Our environment as one of JaxMARL's, for its wrappers and baselines.

    Keys may be JaxMARL's raw ones. `info` holds what those can stack, one number per agent: `terminated`, `truncated`
    and the events, `[A]` each. The final observation is left out; `step_env` returns it as the observation.
    Adapters of equal environments are equal and share compiled code; those of different environments never do.
    """
    return _Ours(env)


class _Ours(MultiAgentEnv):
    def __init__(self, env: Environment):
        super().__init__(env.num_agents)
        self.game = env
        self.agents = list(env.agents)
        self.observation_spaces = {agent: _their_space(env.observation_space(agent)) for agent in self.agents}
        self.action_spaces = {agent: _their_space(env.action_space(agent)) for agent in self.agents}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ours) and self.game == other.game

    def __hash__(self) -> int:
        return hash((_Ours, self.game))

    @functools.partial(jax.jit, static_argnums=0)
    def reset(self, key: PRNGKeyArray) -> tuple[Observations, PyTree]:
        return self.game.reset(_typed(key))

    @functools.partial(jax.jit, static_argnums=0)
    def step(
        self, key: PRNGKeyArray, state: PyTree, actions: Actions, reset_state: PyTree | None = None
    ) -> tuple[Observations, PyTree, dict[str, Array], dict[str, Array], dict[str, Array]]:
        *step, info = self.game.step(_typed(key), state, self._shaped(actions), reset_state)
        return (*step, self._numbers(info))

    @functools.partial(jax.jit, static_argnums=0)
    def step_env(
        self, key: PRNGKeyArray, state: PyTree, actions: Actions
    ) -> tuple[Observations, PyTree, dict[str, Array], dict[str, Array], dict[str, Array]]:
        *step, info = self.game.step_env(_typed(key), state, self._shaped(actions))
        return (*step, self._numbers(info))

    @functools.partial(jax.jit, static_argnums=0)
    def get_obs(self, state: PyTree) -> Observations:
        return self.game.get_obs(state)

    @functools.partial(jax.jit, static_argnums=0)
    def get_avail_actions(self, state: PyTree) -> dict[str, Array]:
        """Masks, 1 for an action that does something; all ones unless the environment says more."""
        offered = getattr(self.game, "get_avail_actions", None)
        if offered is not None:
            return offered(state)
        spaces_of = {agent: self.game.action_space(agent) for agent in self.agents}
        return {a: jnp.ones((s.n,) if isinstance(s, Discrete) else s.shape, bool) for a, s in spaces_of.items()}

    @property
    def name(self) -> str:
        return self.game.name

    @property
    def agent_classes(self) -> dict[str, list[str]]:
        return {"agents": self.agents}

    def _shaped(self, actions: Actions) -> Actions:
        """The actions in the shapes of their spaces: some of JaxMARL's baselines give each a further axis."""
        return {agent: jnp.reshape(actions[agent], self.game.action_space(agent).shape) for agent in self.agents}

    def _numbers(self, info: dict[str, Any]) -> dict[str, Array]:
        numbers = {"terminated": info["terminated"], "truncated": info["truncated"], **info["events"]}
        return {name: jnp.broadcast_to(value, (self.num_agents,)) for name, value in numbers.items()}


def _their_space(space: Space) -> spaces.Space:
    if isinstance(space, Discrete):
        return spaces.Discrete(space.n)
    return spaces.Box(space.low, space.high, space.shape, space.dtype)


def _typed(key: Array) -> PRNGKeyArray:
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)
