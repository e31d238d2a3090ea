"""The recurrent actor-critic: an encoder, a GRU, an actor head and a critic head."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from jaxscope.agents.dense import dense
from jaxscope.agents.distributions import Categorical
from jaxscope.agents.gru import GRU
from jaxscope.agents.initialisers import orthogonal
from jaxscope.spaces import Discrete, Space
from jaxscope.types import Environment, PyTree, View


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of the actor-critic."""

    hidden: int = 64
    """Units of the encoder, of the GRU and of each head."""

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise ValueError(f"network hidden = {self.hidden}: must be at least 1")


class ActorCritic(nnx.Module):
    """Observation -> encoder -> GRU -> (logits, value)."""

    def __init__(self, obs_size: int, num_actions: int, hidden: int, *, rngs: nnx.Rngs):
        root2 = orthogonal(math.sqrt(2.0))
        self.encoder = nnx.Linear(obs_size, hidden, kernel_init=root2, rngs=rngs)
        self.gru = GRU(hidden, hidden, rngs=rngs)
        self.actor_hidden = nnx.Linear(hidden, hidden, kernel_init=root2, rngs=rngs)
        self.actor = nnx.Linear(hidden, num_actions, kernel_init=orthogonal(0.01), rngs=rngs)
        self.critic_hidden = nnx.Linear(hidden, hidden, kernel_init=root2, rngs=rngs)
        self.critic = nnx.Linear(hidden, 1, kernel_init=orthogonal(1.0), rngs=rngs)

    def encode(self, obs: Float[Array, "*b o"]) -> Float[Array, "*b h"]:
        return nnx.relu(_dense(self.encoder, obs))

    def heads(self, h: Float[Array, "*b h"]) -> tuple[Categorical, Float[Array, "*b"]]:
        logits = _dense(self.actor, nnx.relu(_dense(self.actor_hidden, h)))
        return Categorical(logits), _dense(self.critic, nnx.relu(_dense(self.critic_hidden, h)))[..., 0]


def _dense(layer: nnx.Linear, x: Array) -> Array:
    assert layer.bias is not None
    return dense(x, layer.kernel[...], layer.bias[...])


class Act(NamedTuple):
    """What a learner records of one decision."""

    action: Array
    log_prob: Float[Array, "*b"]
    value: Float[Array, "*b"]


@dataclass(frozen=True)
class RecurrentPolicy:
    """The actor-critic as a policy: static, hashable; its weights are a pytree kept outside.

    Batched functions (`step`, `unroll`, `value`) serve the learner; `initial_memory` and `act` are the one-game form
    that every partner has.
    """

    obs_shape: tuple[int, ...]
    actions: Space
    network: NetworkConfig = NetworkConfig()

    @classmethod
    def of(cls, env: Environment, network: NetworkConfig | None = None) -> RecurrentPolicy:
        """The policy that fits an environment's spaces."""
        return cls(env.observation_space().shape, env.action_space(), network or NetworkConfig())

    def __post_init__(self) -> None:
        if not isinstance(self.actions, Discrete):
            raise ValueError(f"the recurrent actor-critic needs discrete actions, not {self.actions}")

    def init(self, key: PRNGKeyArray) -> PyTree:
        """Fresh weights."""
        _, params = nnx.split(self._module(nnx.Rngs(key)))
        return nnx.to_pure_dict(params)

    def describe(self) -> dict[str, Any]:
        """What `restore` needs beside the environment."""
        return {"network": dataclasses.asdict(self.network)}

    def initial_carry(self, rows: int) -> Float[Array, "rows h"]:
        """Recurrent state before the first step, zeros."""
        return jnp.zeros((rows, self.network.hidden))

    def step(
        self, params: PyTree, carry: Array, obs: Float[Array, "R ..."], reset: Bool[Array, " R"], key: PRNGKeyArray
    ) -> tuple[Array, Act]:
        """One decision per row, and the next recurrent state; `reset` says that the episode began with this `obs`."""
        carry, distribution, value = self._forward(params, carry, obs, reset)
        action = distribution.sample(key)
        return carry, Act(action, distribution.log_prob(action), value)

    def value(self, params: PyTree, carry: Array, obs: Float[Array, "R ..."]) -> Float[Array, " R"]:
        """The critic's estimate for `obs`, given the recurrent state after the step before it."""
        return self._forward(params, carry, obs, jnp.zeros(obs.shape[:1], bool))[2]

    def unroll(
        self, params: PyTree, carry: Array, obs: Float[Array, "T R *o"], reset: Bool[Array, "T R"]
    ) -> tuple[Categorical, Float[Array, "T R"]]:
        """Replay whole sequences from their stored first recurrent state."""
        net = self._bind(params)
        return net.heads(net.gru.unroll(carry, net.encode(self._rows(obs, 2)), reset))

    def initial_memory(self, params: PyTree) -> Array:
        del params
        return jnp.zeros((self.network.hidden,))

    def act(self, params: PyTree, memory: Array, view: View, key: PRNGKeyArray) -> tuple[Array, Array]:
        net = self._bind(params)
        memory = net.gru.step(memory, net.encode(view.obs.reshape(-1).astype(jnp.float32)))
        return net.heads(memory)[0].sample(key), memory

    def _forward(self, params, carry, obs, reset):
        net = self._bind(params)
        carry = net.gru.step(jnp.where(reset[:, None], 0.0, carry), net.encode(self._rows(obs, 1)))
        return carry, *net.heads(carry)

    def _rows(self, obs: Array, leading: int) -> Array:
        """Observations of any shape as float vectors: [..., *o] -> [..., o]."""
        return obs.reshape((*obs.shape[:leading], -1)).astype(jnp.float32)

    def _module(self, rngs: nnx.Rngs) -> ActorCritic:
        actions = self.actions
        assert isinstance(actions, Discrete)
        return ActorCritic(math.prod(self.obs_shape), actions.n, self.network.hidden, rngs=rngs)

    def _bind(self, params: PyTree) -> ActorCritic:
        graph, structure = _abstract(self)
        state = jax.tree.map(lambda leaf: leaf, structure)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(graph, state)


def restore(env: Environment, description: dict[str, Any]) -> RecurrentPolicy:
    """The policy for `env` that described itself so."""
    return RecurrentPolicy.of(env, NetworkConfig(**description["network"]))


@functools.cache
def _abstract(policy: RecurrentPolicy):
    """The module's structure, made once per policy without computing any weight."""
    return nnx.split(nnx.eval_shape(lambda: policy._module(nnx.Rngs(0))))
