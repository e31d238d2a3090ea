"""The few types that every room of the library shares, and the legend of axis letters.

    T  steps of a rollout          K  members of a population
    B  environments                N  blocks of environments that share one partner
    A  agents (seats) of a game    S  seeds, that is training runs
    G  members of a group          L  tokens

Arrays of a rollout are time-major: `[T, B, ...]`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, Shaped

from jaxscope.spaces import Space

PyTree = Any
Observations = dict[str, Array]
Actions = dict[str, Array]


class Environment(abc.ABC):
    """A cooperative game for `num_agents` agents, on JaxMARL's interface.

    An implementation is a frozen dataclass, so that it hashes by all its settings: compiled functions are never shared
    between two environments that differ in any of them. It defines `reset` and `step_env` for one game; `jax.vmap`
    makes many.

    `step_env` and `step` return `(observations, state, rewards, dones, info)`, dicts keyed by agent (`dones` also has
    `"__all__"`). `info` always holds

    - `terminated`: the game reached an end of its own; the return stops here;
    - `truncated`: the time limit cut a game that would go on; the return should be bootstrapped;
    - `final_observation`: the observations after this step and before any reset;
    - `events`: named counts per agent, each `[A]`, from which the reward can be explained.

    Where `pays_shaping` is true it also holds `shaping`, `[A]`: the part of every agent's reward that is a hint for
    learners and no aim of the game, so that training can fade it out and results can be shown without.
    """

    num_agents: int
    #: Steps after which an unfinished game is truncated. Nothing else truncates.
    horizon: int
    #: Whether every agent is paid the whole team reward, and not a share of it.
    shared_reward: bool = False
    #: Whether a part of the rewards is shaping.
    pays_shaping: bool = False
    #: Events that tell how an episode was solved, where that can be done in several ways: at most one of them happens
    #: in an episode. Evaluation then says which each policy prefers.
    outcomes: tuple[str, ...] = ()

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name for which `jaxscope.make` gives an equal environment."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Agent names in seat order: `agent_0`, `agent_1`, ..."""
        return tuple(f"agent_{seat}" for seat in range(self.num_agents))

    @abc.abstractmethod
    def observation_space(self, agent: str | None = None) -> Space:
        """The space that every observation of `agent` lies in (all agents share it when the name is left out)."""

    @abc.abstractmethod
    def action_space(self, agent: str | None = None) -> Space:
        """The space of `agent`'s actions."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray) -> tuple[Observations, PyTree]:
        """A first state drawn with `key`, and its observations."""

    @abc.abstractmethod
    def step_env(self, key: PRNGKeyArray, state: PyTree, actions: Actions) -> tuple:
        """One step without auto-reset."""

    def step(self, key: PRNGKeyArray, state: PyTree, actions: Actions, reset_state: PyTree | None = None) -> tuple:
        """One step; where the game ended, observations and state are those of a fresh game.

        `reset_state` gives the state to restart from in place of a drawn one.
        """
        step_key, reset_key = jax.random.split(key)
        obs, state, rewards, dones, info = self.step_env(step_key, state, actions)
        if reset_state is None:
            fresh_obs, fresh_state = self.reset(reset_key)
        else:
            fresh_obs, fresh_state = self.get_obs(reset_state), reset_state
        done = dones["__all__"]
        state = jax.tree.map(lambda fresh, old: jnp.where(done, fresh, old), fresh_state, state)
        obs = jax.tree.map(lambda fresh, old: jnp.where(done, fresh, old), fresh_obs, obs)
        return obs, state, rewards, dones, info

    def team_reward(self, rewards: dict[str, Array]) -> Array:
        """The team's reward of one step from the agents' own: their sum, unless each is already paid the whole."""
        own = [rewards[agent] for agent in self.agents]
        return own[0] if self.shared_reward else sum(own[1:], own[0])

    def team_shaping(self, info: dict[str, Any]) -> Array:
        """The part of the team's reward that is shaping; 0 where an environment does without."""
        if not self.pays_shaping:
            return jnp.zeros_like(info["terminated"], jnp.float32)
        return info["shaping"][..., 0] if self.shared_reward else info["shaping"].sum(-1)

    @abc.abstractmethod
    def get_obs(self, state: PyTree) -> Observations:
        """The observations of all agents in `state`."""

    def by_seat(self, obs: Observations, state: PyTree) -> Shaped[Array, "A ..."]:
        """`obs`, the observations of all agents in `state`, as one array.

        An environment that computes them for all agents at once overrides this to give that array. On CPU that can be
        many times faster: XLA does not vectorise the computation of arrays that it also puts side by side.
        """
        del state
        return jnp.stack([obs[agent] for agent in self.agents])


@runtime_checkable
class Renders(Protocol):
    """An environment that can draw itself."""

    def render(self, state: PyTree) -> Any:
        """A picture of one state: uint8 `[height, width, 3]`, a NumPy array."""
        ...


@runtime_checkable
class Playable(Renders, Protocol):
    """An environment of discrete actions that a person can play at a keyboard."""

    #: The action of each key: `up`, `down`, `left`, `right`, `space`, `enter`, or a character.
    keys: Mapping[str, int]
    #: What the actions are called, by number.
    key_names: Sequence[str]


class View(NamedTuple):
    """What one seat is shown before it acts, in one game."""

    obs: Array  # the observation of this seat
    state: PyTree  # the environment's state; a scripted partner uses no more of it than its declared sight
    seat: Int[Array, ""]  # which agent this is, 0 .. A - 1


@runtime_checkable
class Policy(Protocol):
    """How a partner acts: with its parameters and its memory it forms the triple `(act, params, memory)`.

    A policy is static and hashable. Learned policies keep their weights in `params`; those of one script take `()`.
    The functions are for one seat of one game; callers vmap.
    """

    def initial_memory(self, params: PyTree) -> PyTree:
        """The memory before the first step of an episode."""
        ...

    def act(self, params: PyTree, memory: PyTree, view: View, key: PRNGKeyArray) -> tuple[Array, PyTree]:
        """An action and the next memory."""
        ...


@runtime_checkable
class LearnedPolicy(Policy, Protocol):
    """A policy with weights.

    Its file, directly under `agents/`, has a function `restore(env, description)` that makes the policy anew from what
    `describe` gives, so that runs can keep policies of any kind.
    """

    def init(self, key: PRNGKeyArray) -> PyTree:
        """Fresh weights."""
        ...

    def describe(self) -> dict[str, Any]:
        """All that tells this policy from others of its kind in the same environment, as JSON values."""
        ...
