"""Recurrent PPO as one would write it after PureJaxRL: a training peer.

Independent learners with shared parameters: every agent of every game is one actor, and all actors' samples train the
one network. A block of updates is one jitted `lax.scan`; epochs and minibatches are scans inside it.

The state of the GRU is zeroed by the flag that the rollout used, `done` *before* the step; the loss replays the same.
As in PureJaxRL, the end by the time limit counts as terminal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from benchmarks.peers.games import Games
from benchmarks.peers.ppo import Config, Metrics, RecurrentActorCritic, Taken, Training, gae, log_prob, loss


class Sample(NamedTuple):
    """What the loss needs of one step, `[T, N]` after the rollout; `reset` is whether the view began an episode."""

    view: Array
    reset: Array
    taken: Taken
    reward: Array


class Episodes(NamedTuple):
    """The running return of each actor, and the returns of those that ended during the present update."""

    running: Float[Array, " N"]
    total: Float[Array, ""]
    count: Int[Array, ""]


class Learner(NamedTuple):
    """All that training carries from step to step."""

    params: Any
    optimizer: Any
    games: Any
    view: Shaped[Array, "N O"]
    reset: Bool[Array, " N"]
    memory: Float[Array, "N H"]
    episodes: Episodes
    key: PRNGKeyArray


def make_train(config: Config, games: Games) -> Training:
    """Compiled training for `config`. `update` consumes the learner that it is given (its buffers are donated)."""
    network = RecurrentActorCritic(games.num_actions, config.hidden)
    apply: Any = network.apply  # Flax types this as a tuple of the output and other collections
    optimizer = config.optimizer
    num_actors = games.num_envs * games.num_agents

    def init(key: PRNGKeyArray) -> Learner:
        key, params_key, games_key = jax.random.split(key, 3)
        state, view = games.reset(games_key)
        reset = jnp.ones(num_actors, bool)
        memory = jnp.zeros((num_actors, config.hidden))
        params = network.init(params_key, memory, view[None], reset[None])
        episodes = Episodes(jnp.zeros(num_actors), jnp.zeros(()), jnp.zeros((), jnp.int32))
        return Learner(params, optimizer.init(params), state, view, reset, memory, episodes, key)

    def env_step(learner: Learner, _: None) -> tuple[Learner, Sample]:
        key, action_key, step_key = jax.random.split(learner.key, 3)
        memory, logits, value = apply(learner.params, learner.memory, learner.view[None], learner.reset[None])
        action = jax.random.categorical(action_key, logits[0])
        state, view, reward, done = games.step(step_key, learner.games, action)
        taken = Taken(action, log_prob(logits[0], action), value[0])
        sample = Sample(learner.view, learner.reset, taken, reward)
        episodes = _count(learner.episodes, reward, done)
        learner = learner._replace(games=state, view=view, reset=done, memory=memory, episodes=episodes, key=key)
        return learner, sample

    def minibatch_step(state: tuple, batch: tuple) -> tuple[tuple, Array]:
        params, optimizer_state = state

        def replayed(params: Any) -> Array:
            first_memory, samples, advantages, targets = batch
            _, logits, values = apply(params, first_memory[0], samples.view, samples.reset)
            return loss(config, logits, values, samples.taken, advantages, targets)

        value, gradient = jax.value_and_grad(replayed)(params)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, params)
        return (optax.apply_updates(params, updates), optimizer_state), value

    def update_step(learner: Learner, _: None) -> tuple[Learner, Metrics]:
        first_memory = learner.memory
        learner = learner._replace(
            episodes=learner.episodes._replace(total=jnp.zeros(()), count=jnp.zeros((), jnp.int32))
        )
        learner, samples = jax.lax.scan(env_step, learner, length=config.num_steps)
        _, _, last_value = apply(learner.params, learner.memory, learner.view[None], learner.reset[None])
        done = jnp.concatenate([samples.reset[1:], learner.reset[None]])
        advantages = gae(config, samples.reward, samples.taken.value, done, last_value[0])
        batch = (first_memory[None], samples, advantages, advantages + samples.taken.value)

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


def _count(episodes: Episodes, reward: Float[Array, " N"], done: Bool[Array, " N"]) -> Episodes:
    running = episodes.running + reward
    total = episodes.total + jnp.sum(running * done)
    return Episodes(jnp.where(done, 0.0, running), total, episodes.count + done.sum())


def _minibatches(config: Config, key: PRNGKeyArray, batch: tuple) -> tuple:
    """`batch`, leaves `[T, N, ...]`, cut along shuffled actors into leaves `[minibatch, T, N / minibatches, ...]`."""
    order = jax.random.permutation(key, batch[0].shape[1])

    def cut(leaf: Array) -> Array:
        leaf = jnp.take(leaf, order, axis=1)
        return jnp.swapaxes(leaf.reshape(leaf.shape[0], config.num_minibatches, -1, *leaf.shape[2:]), 0, 1)

    return jax.tree.map(cut, batch)
