"""Feed-forward PPO as JaxMARL's baselines write IPPO: a training peer for its environments.

Observations come as a dict by agent and are stacked into one batch of actors, agent by agent, that share the
parameters; actions go back into a dict. `env.step` resets by itself, under `vmap`; `LogWrapper` keeps the returns of
episodes, and its figures are part of what every step notes. A minibatch is of single samples, shuffled over time and
actors. All updates of a call are one `lax.scan`.

The end by the time limit counts as terminal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PRNGKeyArray, Shaped

from benchmarks.peers import peer
from benchmarks.peers.ppo import ActorCritic, Config, Metrics, Taken, Training, gae, log_prob, loss

ByAgent = dict[str, Array]


class Sample(NamedTuple):
    """What one step notes, `[T, N]` after the rollout."""

    view: Array
    done: Array
    taken: Taken
    reward: Array
    info: ByAgent  # of `LogWrapper`


class Learner(NamedTuple):
    """All that training carries from step to step."""

    params: Any
    optimizer: Any
    games: Any
    obs: ByAgent
    key: PRNGKeyArray


def make_train(config: Config, env: Any) -> Training:
    """Compiled training in a JaxMARL environment. `update` consumes the learner that it is given.

    An agent is paid its reward and, where the environment names any in `info`, its `shaped_reward`.
    """
    env = peer("jaxmarl.wrappers.baselines").LogWrapper(env)
    network = ActorCritic(env.action_space(env.agents[0]).n, config.hidden)
    apply: Any = network.apply  # Flax types this as a tuple of the output and other collections
    optimizer = config.optimizer

    def init(key: PRNGKeyArray) -> Learner:
        key, params_key, games_key = jax.random.split(key, 3)
        obs, state = jax.vmap(env.reset)(jax.random.split(games_key, config.num_envs))
        params = network.init(params_key, _actors(env.agents, obs))
        return Learner(params, optimizer.init(params), state, obs, key)

    def env_step(learner: Learner, _: None) -> tuple[Learner, Sample]:
        key, action_key, step_key = jax.random.split(learner.key, 3)
        view = _actors(env.agents, learner.obs)
        logits, value = apply(learner.params, view)
        action = jax.random.categorical(action_key, logits)
        keys = jax.random.split(step_key, config.num_envs)
        by_agent = dict(zip(env.agents, action.reshape(env.num_agents, -1), strict=True))
        obs, state, reward, done, info = jax.vmap(env.step)(keys, learner.games, by_agent)
        paid = jax.tree.map(jnp.add, reward, info.pop("shaped_reward", jax.tree.map(jnp.zeros_like, reward)))
        sample = Sample(
            view=view,
            done=jnp.tile(done["__all__"], env.num_agents),
            taken=Taken(action, log_prob(logits, action), value),
            reward=_actors(env.agents, paid)[:, 0],
            info=jax.tree.map(lambda x: x.reshape(-1), info),
        )
        return learner._replace(games=state, obs=obs, key=key), sample

    def minibatch_step(state: tuple, batch: tuple) -> tuple[tuple, Array]:
        params, optimizer_state = state

        def judged(params: Any) -> Array:
            samples, advantages, targets = batch
            logits, values = apply(params, samples.view)
            return loss(config, logits, values, samples.taken, advantages, targets)

        value, gradient = jax.value_and_grad(judged)(params)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, params)
        return (optax.apply_updates(params, updates), optimizer_state), value

    def update_step(learner: Learner, _: None) -> tuple[Learner, Metrics]:
        learner, samples = jax.lax.scan(env_step, learner, length=config.num_steps)
        _, last_value = apply(learner.params, _actors(env.agents, learner.obs))
        advantages = gae(config, samples.reward, samples.taken.value, samples.done, last_value)
        batch = (samples, advantages, advantages + samples.taken.value)

        def epoch(state: tuple, epoch_key: PRNGKeyArray) -> tuple[tuple, Array]:
            return jax.lax.scan(minibatch_step, state, _minibatches(config, epoch_key, batch))

        key, epochs_key = jax.random.split(learner.key)
        state = (learner.params, learner.optimizer)
        (params, optimizer_state), losses = jax.lax.scan(epoch, state, jax.random.split(epochs_key, config.num_epochs))
        ended = samples.info["returned_episode"]
        returns = jnp.sum(samples.info["returned_episode_returns"] * ended) / ended.sum()
        metrics = {"return": returns, "loss": losses.mean()}
        return learner._replace(params=params, optimizer=optimizer_state, key=key), metrics

    def update(learner: Learner) -> tuple[Learner, Metrics]:
        return jax.lax.scan(update_step, learner, length=config.updates_per_call)

    return Training(jax.jit(init), jax.jit(update, donate_argnums=0))


def _actors(agents: list[str], by_agent: ByAgent) -> Shaped[Array, "N O"]:
    """Agent by agent, the games of each together; what an agent sees is flattened."""
    stacked = jnp.stack([by_agent[agent] for agent in agents])  # [A, B, ...]
    return stacked.reshape(stacked.shape[0] * stacked.shape[1], -1)


def _minibatches(config: Config, key: PRNGKeyArray, batch: tuple) -> tuple:
    """`batch`, leaves `[T, N, ...]`, as shuffled single samples in leaves `[minibatch, T N / minibatches, ...]`."""
    first: Int[Array, "T N"] = batch[0].taken.action
    order = jax.random.permutation(key, first.size)

    def cut(leaf: Array) -> Array:
        leaf = jnp.take(leaf.reshape(first.size, *leaf.shape[2:]), order, axis=0)
        return leaf.reshape(config.num_minibatches, -1, *leaf.shape[1:])

    return jax.tree.map(cut, batch)
