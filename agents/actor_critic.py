"""The actor-critic: an encoder, a GRU unless it goes without memory, an actor head and a critic head."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from jaxscope.agents import normaliser
from jaxscope.agents.dense import linear
from jaxscope.agents.distributions import Categorical, Distribution, SquashedGaussian
from jaxscope.agents.encoders import Encoder, Support, encoder
from jaxscope.agents.gru import GRU
from jaxscope.agents.initialisers import orthogonal
from jaxscope.spaces import Box, Discrete, Space
from jaxscope.types import Environment, PyTree, View

Memory = Literal["gru", "none"]
#: Bounds of the learned log-spread of continuous actions before squashing: wider, they would pile up at the ends.
_LOG_STD = (-5.0, 1.0)


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of the actor-critic."""

    hidden: int = 64
    """Units of the encoder, of the GRU and of each head."""
    encoder: Encoder = "dense"
    """`dense`: one layer over the flattened observation; `conv`: convolutions, for grids of cells with features."""
    memory: Memory = "gru"
    """`gru`: a recurrent state over the episode; `none`: decisions from the present observation alone."""
    normalise: bool = False
    """Bring every entry of the observations to mean 0 and standard deviation 1, by statistics kept with the weights."""

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, int) or self.hidden < 1:
            raise ValueError(f"network hidden = {self.hidden!r}: must be a whole number, at least 1")
        if not isinstance(self.normalise, bool):
            raise ValueError(f"network normalise = {self.normalise!r}: must be true or false")
        for name, kinds in (("memory", get_args(Memory)), ("encoder", get_args(Encoder))):
            if getattr(self, name) not in kinds:
                raise ValueError(f"network {name} = {getattr(self, name)!r}: must be one of {', '.join(kinds)}")

    @property
    def carry(self) -> int:
        """Numbers in the recurrent state: without memory one, always 0, as checkpoints take no empty arrays."""
        return self.hidden if self.memory == "gru" else 1


class ActorCritic(nnx.Module):
    """Observation -> normaliser, if any -> encoder -> GRU, if any -> (distribution of actions, value)."""

    def __init__(
        self, obs_shape: tuple[int, ...], support: Support, actions: Space, config: NetworkConfig, *, rngs: nnx.Rngs
    ):
        hidden, root2 = config.hidden, orthogonal(math.sqrt(2.0))
        self.actions = actions
        self.normaliser = normaliser.Normaliser(obs_shape) if config.normalise else None
        self.encoder = encoder(config.encoder, obs_shape, support, hidden, rngs=rngs)
        self.gru = GRU(hidden, hidden, rngs=rngs) if config.memory == "gru" else None
        self.actor_hidden = nnx.Linear(hidden, hidden, kernel_init=root2, rngs=rngs)
        outputs = actions.n if isinstance(actions, Discrete) else actions.shape[0]
        self.actor = nnx.Linear(hidden, outputs, kernel_init=orthogonal(0.01), rngs=rngs)
        # The spread of continuous actions is learned, but the same in all situations.
        self.log_std = None if isinstance(actions, Discrete) else nnx.Param(jnp.zeros(outputs))
        self.critic_hidden = nnx.Linear(hidden, hidden, kernel_init=root2, rngs=rngs)
        self.critic = nnx.Linear(hidden, 1, kernel_init=orthogonal(1.0), rngs=rngs)

    def step(self, carry: Float[Array, "*b c"], obs: Array) -> tuple[Float[Array, "*b c"], Float[Array, "*b h"]]:
        """The next recurrent state, and what the heads are given."""
        features = self.encode(obs)
        if self.gru is None:
            return carry, features
        carry = self.gru.step(carry, features)
        return carry, carry

    def unroll(self, carry: Float[Array, "R c"], obs: Array, reset: Bool[Array, "T R"]) -> Float[Array, "T R h"]:
        """What the heads are given after each step of a sequence."""
        features = self.encode(obs)
        return features if self.gru is None else self.gru.unroll(carry, features, reset)

    def encode(self, obs: Array) -> Float[Array, "*b h"]:
        obs = obs.astype(jnp.float32)
        return self.encoder(obs if self.normaliser is None else self.normaliser(obs))

    def heads(self, h: Float[Array, "*b h"]) -> tuple[Distribution, Float[Array, "*b"]]:
        outputs = linear(self.actor, nnx.relu(linear(self.actor_hidden, h)))
        value = linear(self.critic, nnx.relu(linear(self.critic_hidden, h)))[..., 0]
        if self.log_std is None:
            return Categorical(outputs), value
        assert isinstance(self.actions, Box)
        log_std = jnp.broadcast_to(jnp.clip(self.log_std[...], *_LOG_STD), outputs.shape)
        return SquashedGaussian(outputs, log_std, self.actions.low, self.actions.high), value


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
    support: Support = None

    @classmethod
    def of(cls, env: Environment, network: NetworkConfig | None = None) -> RecurrentPolicy:
        """The policy that fits an environment's spaces."""
        space = env.observation_space()
        support = space.support if isinstance(space, Box) else None
        return cls(space.shape, env.action_space(), network or NetworkConfig(), support)

    def __post_init__(self) -> None:
        actions = self.actions
        if isinstance(actions, Box) and not _steerable(actions):
            raise ValueError(
                f"the actor-critic needs discrete actions or vectors of real numbers between bounds, not {actions}"
            )
        if self.network.encoder == "conv" and len(self.obs_shape) != 3:
            raise ValueError(
                f"network encoder = 'conv' needs observations [width, height, features], not {list(self.obs_shape)}"
            )

    def init(self, key: PRNGKeyArray) -> PyTree:
        """Fresh weights."""
        _, params = nnx.split(self._module(nnx.Rngs(key)))
        return nnx.to_pure_dict(params)

    def describe(self) -> dict[str, Any]:
        """What `restore` needs beside the environment.

        `support` is that of the environment that it was trained in, which may be another one of the same spaces.
        """
        return {"network": dataclasses.asdict(self.network), "support": self.support}

    def observe(self, params: PyTree, obs: Float[Array, "T R *o"]) -> PyTree:
        """The weights with observations counted in, where the network normalises them; else as they are.

        It belongs between updates: within one, the same observation must be seen in the same way.
        """
        if not self.network.normalise:
            return params
        return params | {"normaliser": normaliser.observe(params["normaliser"], obs)}

    def initial_carry(self, rows: int) -> Float[Array, "rows c"]:
        """Recurrent state before the first step, zeros."""
        return jnp.zeros((rows, self.network.carry))

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
    ) -> tuple[Distribution, Float[Array, "T R"]]:
        """Replay whole sequences from their stored first recurrent state."""
        net = self._bind(params)
        return net.heads(net.unroll(carry, obs, reset))

    def initial_memory(self, params: PyTree) -> Array:
        del params
        return jnp.zeros((self.network.carry,))

    def act(self, params: PyTree, memory: Array, view: View, key: PRNGKeyArray) -> tuple[Array, Array]:
        net = self._bind(params)
        memory, features = net.step(memory, view.obs)
        return net.heads(features)[0].sample(key), memory

    def _forward(self, params, carry, obs, reset):
        net = self._bind(params)
        carry, features = net.step(jnp.where(reset[:, None], 0.0, carry), obs)
        return carry, *net.heads(features)

    def _module(self, rngs: nnx.Rngs) -> ActorCritic:
        return ActorCritic(self.obs_shape, self.support, self.actions, self.network, rngs=rngs)

    def _bind(self, params: PyTree) -> ActorCritic:
        graph, structure = _abstract(self)
        state = jax.tree.map(lambda leaf: leaf, structure)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(graph, state)


def restore(env: Environment, description: dict[str, Any]) -> RecurrentPolicy:
    """The policy for `env` that described itself so."""
    support = None if description["support"] is None else tuple(description["support"])
    return dataclasses.replace(RecurrentPolicy.of(env, NetworkConfig(**description["network"])), support=support)


def _steerable(actions: Box) -> bool:
    bounded = math.isfinite(actions.low) and math.isfinite(actions.high) and actions.low < actions.high
    return bounded and not actions.integer and len(actions.shape) == 1 and actions.shape[0] > 0


@functools.cache
def _abstract(policy: RecurrentPolicy):
    """The module's structure, made once per policy without computing any weight."""
    return nnx.split(nnx.eval_shape(lambda: policy._module(nnx.Rngs(0))))
