"""Self-play: one policy learns in every seat, and meets nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import PRNGKeyArray

from jaxscope import ppo, rollout
from jaxscope.agents.actor_critic import RecurrentPolicy
from jaxscope.metrics import Metrics
from jaxscope.population import Population
from jaxscope.ppo import Learner
from jaxscope.types import Environment, Policy

MEETS_PARTNERS = False
partition = ppo.partition


@dataclass(frozen=True)
class Config(ppo.Config):
    """Independent seeds of one policy that plays with itself (PopGen, equation 4)."""


def policy(cfg: Config, env: Environment) -> RecurrentPolicy:
    """The policy that is trained."""
    return ppo.policy(cfg.ppo, env)


def init(
    cfg: Config, env: Environment, policies: tuple[Policy, ...], population: Population | None, key: PRNGKeyArray
) -> Learner:
    """A learner before its first iteration."""
    del policies, population
    params_key, play_key, learner_key = jax.random.split(key, 3)
    play = rollout.begin_self_play(env, policy(cfg, env), cfg.ppo.num_envs, play_key)
    return ppo.init(cfg.ppo, env, play, None, params_key, learner_key)


def iteration(cfg: Config, env: Environment, policies: tuple[Policy, ...], learner: Learner) -> tuple[Learner, Metrics]:
    """One rollout and one update."""
    del policies
    key, play_key, update_key = jax.random.split(learner.key, 3)
    learned = policy(cfg, env)
    play, trajectory, episodes = rollout.self_play(
        env, learned, learner.params, learner.play, cfg.ppo.num_steps, play_key
    )
    after, means = ppo.update(cfg.ppo, learned, learner, trajectory, update_key)
    return after._replace(play=play, key=key), Metrics(means, ppo.episode_totals(env, episodes), {})
