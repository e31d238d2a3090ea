"""Recurrent PPO: its settings, its state, and the update from a trajectory.

Methods compose `rollout`, `returns.gae` and `update` into their own `iteration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from einops import rearrange
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxscope import losses, returns, reward_scale, rollout
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy
from jaxscope.metrics import EpisodeTotals
from jaxscope.placement import spread
from jaxscope.population import Population
from jaxscope.reward_scale import RewardScale
from jaxscope.rollout import Episodes, Play, Trajectory
from jaxscope.types import Environment, PyTree

Means = dict[str, Float[Array, ""]]


@dataclass(frozen=True)
class PPOConfig:
    """Settings of recurrent PPO. Frames are joint steps of an environment."""

    frames: int = 4_000_000
    """Frames to train for, rounded down to whole iterations."""
    num_envs: int = 256
    """Environments that step at a time."""
    num_steps: int = 50
    """Steps of every environment per iteration; gradients flow through all of them."""
    epochs: int = 4
    """Passes over each rollout."""
    minibatches: int = 8
    """Optimiser steps per pass; a minibatch holds whole sequences."""
    learning_rate: float = 1e-3
    """Adam's step size at the start."""
    anneal: bool = True
    """Lower the step size linearly to zero over the run."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.9
    """Trace decay of the advantage estimate."""
    clip: float = 0.2
    """Clip range of the importance ratio and of the value change."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this global norm."""
    bootstrap_truncation: bool = True
    """Let the value of what would follow stand in where a time limit cut an episode."""
    shaping_frames: int | None = None
    """Frames over which shaped rewards fade linearly to nothing, where the environment has any; none: they stay."""
    scale_rewards: bool = True
    """Divide rewards by the running spread of discounted returns before learning from them."""
    network: NetworkConfig = NetworkConfig()
    """Sizes of the actor-critic."""

    def __post_init__(self) -> None:
        for name in ("frames", "num_envs", "num_steps", "epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least 1")
        if self.shaping_frames is not None and self.shaping_frames < 1:
            raise ValueError(f"shaping_frames = {self.shaping_frames}: must be at least 1, or none")
        for name in ("learning_rate", "max_grad_norm", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} = {getattr(self, name)}: must be positive")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} = {getattr(self, name)}: must lie in [0, 1]")
        for name in ("entropy", "value_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} = {getattr(self, name)}: must not be negative")
        if self.num_envs % self.minibatches:
            raise ValueError(f"num_envs = {self.num_envs} must be a multiple of minibatches = {self.minibatches}")
        if self.frames < self.frames_per_iteration:
            raise ValueError(
                f"frames = {self.frames} is less than one iteration, "
                f"num_envs * num_steps = {self.num_envs} * {self.num_steps} = {self.frames_per_iteration}"
            )

    @property
    def frames_per_iteration(self) -> int:
        return self.num_envs * self.num_steps

    @property
    def iterations(self) -> int:
        return self.frames // self.frames_per_iteration


@dataclass(frozen=True)
class Config:
    """Settings of a method that learns with PPO; the method adds its own."""

    ppo: PPOConfig = PPOConfig()

    @property
    def iterations(self) -> int:
        return self.ppo.iterations

    @property
    def frames_per_iteration(self) -> int:
        return self.ppo.frames_per_iteration

    @property
    def num_envs(self) -> int:
        return self.ppo.num_envs


class Learner(NamedTuple):
    """All that training carries from one iteration to the next, and all that a checkpoint holds."""

    params: PyTree
    opt_state: PyTree
    play: Play
    population: Population | None  # the partners met; None in self-play
    key: PRNGKeyArray
    iteration: Int[Array, ""]
    reward_scale: RewardScale | None  # None: rewards are learned from as they are


class Batch(NamedTuple):
    """Sequences to learn from: `[T, R, ...]`."""

    trajectory: Trajectory
    advantage: Float[Array, "T R"]


def optimiser(cfg: PPOConfig) -> optax.GradientTransformation:
    """Adam with a global gradient clip and, if wanted, a linear decay to zero."""
    steps = cfg.iterations * cfg.epochs * cfg.minibatches
    rate = optax.linear_schedule(cfg.learning_rate, 0.0, steps) if cfg.anneal else cfg.learning_rate
    return optax.chain(optax.clip_by_global_norm(cfg.max_grad_norm), optax.adam(rate, eps=1e-5))


def policy(cfg: PPOConfig, env: Environment) -> RecurrentPolicy:
    """The policy that `cfg` trains in `env`."""
    return RecurrentPolicy.of(env, cfg.network)


def shaping_weight(cfg: PPOConfig, iteration: Int[Array, ""]) -> Float[Array, ""]:
    """What is left of the shaping in the rewards of an iteration: from 1 to 0 over `shaping_frames`."""
    if cfg.shaping_frames is None:
        return jnp.ones(())
    return jnp.maximum(1.0 - iteration * (cfg.frames_per_iteration / cfg.shaping_frames), 0.0)


def faded(cfg: PPOConfig, trajectory: Trajectory, iteration: Int[Array, ""]) -> Trajectory:
    """The rollout of an iteration with the shaping in its rewards weighted as `shaping_frames` says."""
    if cfg.shaping_frames is None:
        return trajectory
    gone = 1.0 - shaping_weight(cfg, iteration)
    return trajectory._replace(reward=trajectory.reward - gone * trajectory.shaping)


def advantages(cfg: PPOConfig, trajectory: Trajectory) -> Float[Array, "T R"]:
    """Generalised advantage estimates of a rollout."""
    t = trajectory
    terminated = t.terminated if cfg.bootstrap_truncation else t.terminated | t.time_limit
    return returns.gae(t.reward, t.act.value, t.next_value, terminated, t.truncated, cfg.gamma, cfg.gae_lambda)


def init(
    cfg: PPOConfig,
    env: Environment,
    play: Play,
    population: Population | None,
    params_key: PRNGKeyArray,
    learner_key: PRNGKeyArray,
) -> Learner:
    """A learner before its first iteration, with the games that it will go on with.

    Raises:
        ValueError: shaping should fade, and `env` pays none.
    """
    if cfg.shaping_frames is not None and not env.pays_shaping:
        raise ValueError(f"shaping_frames = {cfg.shaping_frames}, but {env.name} pays no shaping that could fade")
    params = policy(cfg, env).init(params_key)
    return Learner(
        params=params,
        opt_state=optimiser(cfg).init(params),
        play=play,
        population=population,
        key=learner_key,
        iteration=jnp.zeros((), jnp.int32),
        reward_scale=reward_scale.begin(play.carry.shape[0]) if cfg.scale_rewards else None,
    )


def scaled(cfg: PPOConfig, scale: RewardScale | None, trajectory: Trajectory) -> tuple[RewardScale | None, Trajectory]:
    """The rollout with its rewards in units of the spread of returns, where that is wanted."""
    if scale is None:
        return None, trajectory
    scale = reward_scale.observe(scale, trajectory.reward, trajectory.reset, cfg.gamma)
    return scale, trajectory._replace(reward=scale.scaled(trajectory.reward))


def update(
    cfg: PPOConfig, policy: RecurrentPolicy, learner: Learner, trajectory: Trajectory, key: PRNGKeyArray
) -> tuple[Learner, Means]:
    """The learner after all epochs on one rollout, with mean metrics of the optimiser steps."""
    scale, trajectory = scaled(cfg, learner.reward_scale, faded(cfg, trajectory, learner.iteration))
    batch = Batch(trajectory, advantages(cfg, trajectory))
    optim = optimiser(cfg)

    def minibatch_step(state: tuple[PyTree, PyTree], minibatch: Batch):
        params, opt_state = state
        (_, metrics), grads = jax.value_and_grad(loss, argnums=2, has_aux=True)(cfg, policy, params, minibatch)
        updates, opt_state = optim.update(grads, opt_state, params)
        metrics["grad_norm"] = optax.tree.norm(grads)
        return (optax.apply_updates(params, updates), opt_state), metrics

    def epoch(state: tuple[PyTree, PyTree], index: Int[Array, ""]):
        epoch_key = jax.random.fold_in(key, index)
        return jax.lax.scan(minibatch_step, state, shuffled(batch, cfg.minibatches, epoch_key))

    state = (learner.params, learner.opt_state)
    (params, opt_state), metrics = jax.lax.scan(epoch, state, jnp.arange(cfg.epochs))
    params = policy.observe(params, trajectory.obs)
    means = jax.tree.map(jnp.mean, metrics)
    if cfg.shaping_frames is not None:
        means["shaping_weight"] = shaping_weight(cfg, learner.iteration)
    if scale is not None:
        means["reward_spread"] = scale.spread
    after = learner._replace(params=params, opt_state=opt_state, reward_scale=scale, iteration=learner.iteration + 1)
    return after, means


def shuffled(batch: Batch, minibatches: int, key: PRNGKeyArray) -> Batch:
    """Minibatches of whole sequences in random order: `[T, R, ...] -> [minibatches, T, R / minibatches, ...]`.

    Only rows are shuffled, never time: a recurrent state must be replayed in order.
    """
    rows = batch.advantage.shape[1]
    order = jax.random.permutation(key, rows)

    def split(x: Array) -> Array:
        return spread(rearrange(x[:, order], "t (m r) ... -> m t r ...", m=minibatches), 2)

    carry = spread(rearrange(batch.trajectory.carry[order], "(m r) h -> m r h", m=minibatches), 1)
    trajectory = jax.tree.map(split, batch.trajectory._replace(carry=None))
    return Batch(trajectory._replace(carry=carry), split(batch.advantage))


def loss(cfg: PPOConfig, policy: RecurrentPolicy, params: PyTree, batch: Batch) -> tuple[Float[Array, ""], Means]:
    """PPO's loss on whole sequences, replayed with the resets of the rollout."""
    t = batch.trajectory
    distribution, value = policy.unroll(params, t.carry, t.obs, t.reset)
    log_ratio = distribution.log_prob(t.act.action) - t.act.log_prob
    normalised = (batch.advantage - batch.advantage.mean()) / (batch.advantage.std() + 1e-8)
    target = batch.advantage + t.act.value

    policy_loss = losses.clipped_surrogate(log_ratio, normalised, cfg.clip).mean()
    value_loss = losses.clipped_value(value, t.act.value, target, cfg.clip).mean()
    entropy = distribution.entropy().mean()
    metrics = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "kl": losses.approximate_kl(log_ratio).mean(),
        "clip_fraction": (jnp.abs(jnp.expm1(log_ratio)) > cfg.clip).mean(),
    }
    return policy_loss + cfg.value_weight * value_loss - cfg.entropy * entropy, metrics


def episode_totals(env: Environment, episodes: Episodes) -> EpisodeTotals:
    """Counts and sums over the episodes that ended."""
    shaping = episodes.shaping if env.pays_shaping else None
    return EpisodeTotals.of(episodes.counted, episodes.team_return, episodes.length, shaping)


def partition(learner: Learner) -> Learner:
    """Which axes of a learner hold environments: those of its games. Weights are whole on every device."""
    whole: Any = PartitionSpec()
    return Learner(
        params=whole,
        opt_state=whole,
        play=rollout.partition(learner.play),
        population=None if learner.population is None else whole,
        key=whole,
        iteration=whole,
        reward_scale=None if learner.reward_scale is None else reward_scale.partition(),
    )
