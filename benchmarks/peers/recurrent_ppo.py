"""Recurrent PPO as one would write it after PureJaxRL, on Jumanji's LevelBasedForaging: the training peer.

Independent learners with shared parameters: every agent of every game is one actor, and all actors' samples train the
one network. A block of updates is one jitted `lax.scan`; epochs and minibatches are scans inside it. The network is
Dense + relu, a GRU scanned over time, then a hidden layer each for the policy and the value.

The state of the GRU is zeroed by the flag that the rollout used, `done` *before* the step; the loss replays the same.
As in PureJaxRL, the end by the time limit counts as terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from benchmarks.peers import jumanji_lbf
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
    team_reward: bool = True  # each agent is paid the sum of both rewards, or only its own
    sight: int | None = None

    def __post_init__(self) -> None:
        sizes = (self.num_envs, self.num_steps, self.updates_per_call, self.num_epochs, self.num_minibatches)
        if min(sizes) < 1 or self.hidden < 1:
            raise ValueError(f"sizes must be 1 or more, got {self}")
        if self.num_envs % self.num_minibatches:
            raise ValueError(f"num_envs ({self.num_envs}) must be a multiple of num_minibatches")

    @property
    def num_actors(self) -> int:
        return self.num_envs * jumanji_lbf.NUM_AGENTS

    @property
    def frames_per_call(self) -> int:
        return self.num_envs * self.num_steps * self.updates_per_call


class ResettingGRU(nn.Module):
    """One step of a GRU whose memory is zero wherever `reset` says that a new episode begins."""

    hidden: int

    @nn.compact
    def __call__(self, memory: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        features, reset = inputs
        memory = jnp.where(reset[:, None], 0.0, memory)
        return nn.GRUCell(self.hidden)(memory, features)


class ActorCritic(nn.Module):
    """Logits and values of sequences `[T, N, ...]`, and the memory after them."""

    num_actions: int
    hidden: int

    @nn.compact
    def __call__(
        self, memory: Float[Array, "N H"], views: Float[Array, "T N O"], resets: Bool[Array, "T N"]
    ) -> tuple[Float[Array, "N H"], Float[Array, "T N U"], Float[Array, "T N"]]:
        def dense(features: int, scale: float) -> nn.Dense:
            return nn.Dense(features, kernel_init=nn.initializers.orthogonal(scale))

        features = nn.relu(dense(self.hidden, 2**0.5)(views))
        over_time = nn.scan(ResettingGRU, variable_broadcast="params", split_rngs={"params": False})
        memory, features = over_time(self.hidden)(memory, (features, resets))
        logits = dense(self.num_actions, 0.01)(nn.relu(dense(self.hidden, 2.0)(features)))
        values = dense(1, 1.0)(nn.relu(dense(self.hidden, 2.0)(features)))
        return memory, logits, values[..., 0]


class Sample(NamedTuple):
    """What the loss needs of one step, `[T, N]` after the rollout; `reset` is whether the view began an episode."""

    view: Array
    reset: Array
    action: Array
    log_prob: Array
    value: Array
    reward: Array


class Episodes(NamedTuple):
    """The running return of each game `[B]`, and the returns of those that ended during the present update."""

    running: Float[Array, " B"]
    total: Float[Array, ""]
    count: Int[Array, ""]


class Learner(NamedTuple):
    """All that training carries from step to step."""

    params: Any
    optimizer: Any
    games: Any
    view: Float[Array, "N O"]
    reset: Bool[Array, " N"]
    memory: Float[Array, "N H"]
    episodes: Episodes
    key: PRNGKeyArray


class Training(NamedTuple):
    """`init(key) -> learner`, and `update(learner) -> learner, metrics [updates_per_call]`, both jitted.

    The metric `return` is the mean team return of the episodes that ended in the update, NaN where none did.
    """

    init: Callable[[PRNGKeyArray], Learner]
    update: Callable[[Learner], tuple[Learner, Metrics]]


def make_train(config: Config) -> Training:
    """Compiled training for `config`. `update` consumes the learner that it is given (its buffers are donated)."""
    env = jumanji_lbf.make_env(config.sight)
    network = ActorCritic(jumanji_lbf.NUM_ACTIONS, config.hidden)
    apply: Any = network.apply  # Flax types this as a tuple of the output and other collections
    optimizer = optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm), optax.adam(config.learning_rate, eps=config.adam_eps)
    )

    def init(key: PRNGKeyArray) -> Learner:
        key, params_key, games_key = jax.random.split(key, 3)
        games, timestep = env.reset(jax.random.split(games_key, config.num_envs))
        view = _actors(timestep.observation.agents_view)
        reset = jnp.ones(config.num_actors, bool)
        memory = jnp.zeros((config.num_actors, config.hidden))
        params = network.init(params_key, memory, view[None], reset[None])
        episodes = Episodes(jnp.zeros(config.num_envs), jnp.zeros(()), jnp.zeros((), jnp.int32))
        return Learner(params, optimizer.init(params), games, view, reset, memory, episodes, key)

    def env_step(learner: Learner, _: None) -> tuple[Learner, Sample]:
        key, action_key = jax.random.split(learner.key)
        memory, logits, value = apply(learner.params, learner.memory, learner.view[None], learner.reset[None])
        action = jax.random.categorical(action_key, logits[0])
        games, timestep = env.step(learner.games, action.reshape(config.num_envs, -1))
        team = timestep.reward.sum(axis=1)
        paid = jnp.repeat(team, jumanji_lbf.NUM_AGENTS) if config.team_reward else timestep.reward.reshape(-1)
        sample = Sample(learner.view, learner.reset, action, _log_prob(logits[0], action), value[0], paid)
        done = timestep.last()
        learner = learner._replace(
            games=games,
            view=_actors(timestep.observation.agents_view),
            reset=jnp.repeat(done, jumanji_lbf.NUM_AGENTS),
            memory=memory,
            episodes=_count(learner.episodes, team, done),
            key=key,
        )
        return learner, sample

    def minibatch_step(state: tuple, batch: tuple) -> tuple[tuple, Array]:
        params, optimizer_state = state
        loss, gradient = jax.value_and_grad(_loss)(params, apply, config, *batch)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, params)
        return (optax.apply_updates(params, updates), optimizer_state), loss

    def update_step(learner: Learner, _: None) -> tuple[Learner, Metrics]:
        first_memory = learner.memory
        learner = learner._replace(
            episodes=learner.episodes._replace(total=jnp.zeros(()), count=jnp.zeros((), jnp.int32))
        )
        learner, samples = jax.lax.scan(env_step, learner, length=config.num_steps)
        _, _, last_value = apply(learner.params, learner.memory, learner.view[None], learner.reset[None])
        advantages = _gae(config, samples, last_value[0], learner.reset)
        batch = (first_memory[None], samples, advantages, advantages + samples.value)

        def epoch(state: tuple, epoch_key: PRNGKeyArray) -> tuple[tuple, Array]:
            return jax.lax.scan(minibatch_step, state, _minibatches(config, epoch_key, batch))

        key, epochs_key = jax.random.split(learner.key)
        state = (learner.params, learner.optimizer)
        (params, optimizer_state), losses = jax.lax.scan(epoch, state, jax.random.split(epochs_key, config.num_epochs))
        metrics = {"return": learner.episodes.total / learner.episodes.count, "loss": losses.mean()}
        return learner._replace(params=params, optimizer=optimizer_state, key=key), metrics

    def update(learner: Learner) -> tuple[Learner, Metrics]:
        return jax.lax.scan(update_step, learner, length=config.updates_per_call)

    return Training(jax.jit(init), jax.jit(update, donate_argnums=0))


def contender(config: Config = Config(), seed: int = 0) -> Contender:
    """Training as a contender: rollout and update, in joint frames a second."""
    training = make_train(config)
    learner = None

    def run() -> Metrics:
        nonlocal learner
        learner = training.init(jax.random.key(seed)) if learner is None else learner
        learner, metrics = training.update(learner)
        return metrics

    game = "whole grid" if config.sight is None else f"sight {config.sight}"
    name = f"PureJaxRL-style PPO, jumanji, {config.num_envs}x{config.num_steps}, {game}"
    return Contender(name, run, config.frames_per_call, unit="frames/s")


def _actors(views: Int[Array, "B A O"]) -> Float[Array, "N O"]:
    return views.reshape(-1, views.shape[-1]).astype(jnp.float32)


def _count(episodes: Episodes, reward: Float[Array, " B"], done: Bool[Array, " B"]) -> Episodes:
    running = episodes.running + reward
    total = episodes.total + jnp.sum(running * done)
    return Episodes(jnp.where(done, 0.0, running), total, episodes.count + done.sum())


def _log_prob(logits: Float[Array, "*batch U"], action: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], axis=-1)[..., 0]


def _gae(
    config: Config, samples: Sample, last_value: Float[Array, " N"], last_reset: Bool[Array, " N"]
) -> Float[Array, "T N"]:
    """Advantages; the step before a reset ended its episode, so nothing flows back over it."""

    def backward(carry: tuple, sample: Sample) -> tuple[tuple, Array]:
        advantage, next_value, next_reset = carry
        discount = config.gamma * (1.0 - next_reset)
        delta = sample.reward + discount * next_value - sample.value
        advantage = delta + discount * config.gae_lambda * advantage
        return (advantage, sample.value, sample.reset), advantage

    start = (jnp.zeros_like(last_value), last_value, last_reset)
    return jax.lax.scan(backward, start, samples, reverse=True, unroll=16)[1]


def _minibatches(config: Config, key: PRNGKeyArray, batch: tuple) -> tuple:
    """`batch`, leaves `[T, N, ...]`, cut along shuffled actors into leaves `[minibatch, T, N / minibatches, ...]`."""
    order = jax.random.permutation(key, config.num_actors)

    def cut(leaf: Array) -> Array:
        leaf = jnp.take(leaf, order, axis=1)
        return jnp.swapaxes(leaf.reshape(leaf.shape[0], config.num_minibatches, -1, *leaf.shape[2:]), 0, 1)

    return jax.tree.map(cut, batch)


def _loss(
    params: Any,
    apply: Callable[..., Any],
    config: Config,
    first_memory: Float[Array, "1 N H"],
    samples: Sample,
    advantages: Float[Array, "T N"],
    targets: Float[Array, "T N"],
) -> Float[Array, ""]:
    """Clipped surrogate, clipped value error and entropy of one minibatch, its sequences replayed from the start."""
    _, logits, values = apply(params, first_memory[0], samples.view, samples.reset)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = jnp.exp(_log_prob(logits, samples.action) - samples.log_prob)
    surrogate = jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - config.clip, 1 + config.clip) * advantages)
    near_old = samples.value + jnp.clip(values - samples.value, -config.clip, config.clip)
    value_error = 0.5 * jnp.maximum((values - targets) ** 2, (near_old - targets) ** 2).mean()
    entropy = -jnp.sum(jax.nn.softmax(logits) * jax.nn.log_softmax(logits), axis=-1).mean()
    return -surrogate.mean() + config.value_coefficient * value_error - config.entropy_coefficient * entropy
