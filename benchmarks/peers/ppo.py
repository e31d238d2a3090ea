"""What the training peers share: sizes and coefficients, the network, advantages, and the loss of PPO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from benchmarks.timing import Contender

Metrics = dict[str, Array]


@dataclass(frozen=True)
class Config:
    """Sizes and coefficients; a frame is one joint step of one game, and an update takes `num_envs * num_steps`."""

    num_envs: int = 256
    num_steps: int = 50
    updates_per_call: int = 4
    num_epochs: int = 4
    num_minibatches: int = 4
    hidden: int = 64
    learning_rate: float = 1e-4
    adam_eps: float = 1e-5
    max_grad_norm: float = 0.5
    gamma: float = 0.99
    gae_lambda: float = 0.9
    clip: float = 0.2
    entropy_coefficient: float = 0.01
    value_coefficient: float = 0.5

    def __post_init__(self) -> None:
        sizes = (self.num_envs, self.num_steps, self.updates_per_call, self.num_epochs, self.num_minibatches)
        if min(sizes) < 1 or self.hidden < 1:
            raise ValueError(f"sizes must be 1 or more, got {self}")
        if self.num_envs % self.num_minibatches:
            raise ValueError(f"num_envs ({self.num_envs}) must be a multiple of num_minibatches")

    @property
    def frames_per_call(self) -> int:
        return self.num_envs * self.num_steps * self.updates_per_call

    @property
    def optimizer(self) -> optax.GradientTransformation:
        adam = optax.adam(self.learning_rate, eps=self.adam_eps)
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), adam)


class Training(NamedTuple):
    """`init(key) -> learner`, and `update(learner) -> learner, metrics [updates_per_call]`, both jitted.

    The metric `return` is the mean return of the agents' episodes that ended in the update, NaN where none did.
    """

    init: Callable[[PRNGKeyArray], Any]
    update: Callable[[Any], tuple[Any, Metrics]]


def contender(name: str, config: Config, training: Training, seed: int = 0) -> Contender:
    """Training as a contender: rollout and update, in joint frames a second."""
    learner = None

    def run() -> Metrics:
        nonlocal learner
        learner = training.init(jax.random.key(seed)) if learner is None else learner
        learner, metrics = training.update(learner)
        return metrics

    return Contender(f"{name}, {config.num_envs}x{config.num_steps}", run, config.frames_per_call, unit="frames/s")


def _dense(features: int, scale: float) -> nn.Dense:
    return nn.Dense(features, kernel_init=nn.initializers.orthogonal(scale))


class ActorCritic(nn.Module):
    """Logits and values: a layer, then a hidden layer each for the policy and the value."""

    num_actions: int
    hidden: int

    @nn.compact
    def __call__(self, views: Shaped[Array, "*b O"]) -> tuple[Float[Array, "*b U"], Float[Array, "*b"]]:
        return Heads(self.num_actions, self.hidden)(nn.relu(_dense(self.hidden, 2**0.5)(views)))


class RecurrentActorCritic(nn.Module):
    """`ActorCritic` over sequences `[T, N, ...]`, with a GRU before the heads; also the memory after them."""

    num_actions: int
    hidden: int

    @nn.compact
    def __call__(
        self, memory: Float[Array, "N H"], views: Shaped[Array, "T N O"], resets: Bool[Array, "T N"]
    ) -> tuple[Float[Array, "N H"], Float[Array, "T N U"], Float[Array, "T N"]]:
        features = nn.relu(_dense(self.hidden, 2**0.5)(views))
        over_time = nn.scan(ResettingGRU, variable_broadcast="params", split_rngs={"params": False})
        memory, features = over_time(self.hidden)(memory, (features, resets))
        return memory, *Heads(self.num_actions, self.hidden)(features)


class ResettingGRU(nn.Module):
    """One step of a GRU whose memory is zero wherever `reset` says that a new episode begins."""

    hidden: int

    @nn.compact
    def __call__(self, memory: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        features, reset = inputs
        memory = jnp.where(reset[:, None], 0.0, memory)
        return nn.GRUCell(self.hidden)(memory, features)


class Heads(nn.Module):
    """A hidden layer each for the policy and the value."""

    num_actions: int
    hidden: int

    @nn.compact
    def __call__(self, features: Float[Array, "*b H"]) -> tuple[Float[Array, "*b U"], Float[Array, "*b"]]:
        logits = _dense(self.num_actions, 0.01)(nn.relu(_dense(self.hidden, 2.0)(features)))
        values = _dense(1, 1.0)(nn.relu(_dense(self.hidden, 2.0)(features)))
        return logits, values[..., 0]


def log_prob(logits: Float[Array, "*b U"], action: Int[Array, "*b"]) -> Float[Array, "*b"]:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], axis=-1)[..., 0]


def gae(
    config: Config,
    reward: Float[Array, "T N"],
    value: Float[Array, "T N"],
    done: Bool[Array, "T N"],
    last_value: Float[Array, " N"],
) -> Float[Array, "T N"]:
    """Advantages; nothing flows back over a step that ended its episode."""

    def backward(carry: tuple, step: tuple) -> tuple[tuple, Array]:
        advantage, next_value = carry
        reward, value, done = step
        discount = config.gamma * (1.0 - done)
        delta = reward + discount * next_value - value
        advantage = delta + discount * config.gae_lambda * advantage
        return (advantage, value), advantage

    start = (jnp.zeros_like(last_value), last_value)
    return jax.lax.scan(backward, start, (reward, value, done), reverse=True, unroll=16)[1]


class Taken(NamedTuple):
    """What the rollout noted of the steps that a loss is about."""

    action: Int[Array, "*b"]
    log_prob: Float[Array, "*b"]
    value: Float[Array, "*b"]


def loss(
    config: Config,
    logits: Float[Array, "*b U"],
    values: Float[Array, "*b"],
    taken: Taken,
    advantages: Float[Array, "*b"],
    targets: Float[Array, "*b"],
) -> Float[Array, ""]:
    """Clipped surrogate, clipped value error and entropy of one minibatch."""
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = jnp.exp(log_prob(logits, taken.action) - taken.log_prob)
    surrogate = jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - config.clip, 1 + config.clip) * advantages)
    near_old = taken.value + jnp.clip(values - taken.value, -config.clip, config.clip)
    value_error = 0.5 * jnp.maximum((values - targets) ** 2, (near_old - targets) ** 2).mean()
    entropy = -jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=-1).mean()
    return -surrogate.mean() + config.value_coefficient * value_error - config.entropy_coefficient * entropy
