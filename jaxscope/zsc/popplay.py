"""PopPlay: a cooperator learns in one seat with a frozen population of partners in the others."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from jaxscope import ppo, rollout
from jaxscope.agents.actor_critic import RecurrentPolicy
from jaxscope.casting import Partnering, recast
from jaxscope.metrics import Metrics
from jaxscope.population import Population
from jaxscope.ppo import Learner
from jaxscope.types import Environment, Policy

MEETS_PARTNERS = True
partition = ppo.partition


@dataclass(frozen=True)
class Config(ppo.Config):
    """PPO against frozen partners drawn by the rank of the return with them (PopGen, section 4.3 and appendix B.1)."""

    partnering: Partnering = Partnering()


def policy(cfg: Config, env: Environment) -> RecurrentPolicy:
    """The policy that is trained."""
    return ppo.policy(cfg.ppo, env)


def init(
    cfg: Config, env: Environment, policies: tuple[Policy, ...], population: Population | None, key: PRNGKeyArray
) -> Learner:
    """A learner before its first iteration, with fresh games and partners."""
    if population is None or not policies:
        raise ValueError("popplay needs at least one partner")
    params_key, play_key, learner_key = jax.random.split(key, 3)
    play = rollout.begin_with_partners(
        env, policy(cfg, env), policies, population, cfg.partnering, cfg.ppo.num_envs, play_key
    )
    return ppo.init(cfg.ppo, env, play, population, params_key, learner_key)


def iteration(cfg: Config, env: Environment, policies: tuple[Policy, ...], learner: Learner) -> tuple[Learner, Metrics]:
    """One rollout and one update; partners are drawn anew when their period is over."""
    assert learner.population is not None
    key, cast_key, play_key, update_key = jax.random.split(learner.key, 4)
    learned = policy(cfg, env)
    opening, closing = _period(cfg, env, learner)
    # When a period closes the rollout starts all games anew, so that only partners and seats are left to draw.
    fresh = recast(policies, learner.population, cfg.partnering, env.num_agents, cfg.ppo.num_envs, cast_key)
    casting = jax.tree.map(lambda new, old: jnp.where(opening, new, old), fresh, learner.play.casting)
    law = learner.population.ranked_probabilities(cfg.partnering.beta, cfg.partnering.ties)
    play, trajectory, episodes = rollout.with_partners(
        env,
        learned,
        policies,
        learner.params,
        learner.population,
        cfg.partnering,
        learner.play._replace(casting=casting),
        cfg.ppo.num_steps,
        play_key,
        closing,
    )
    after, means = ppo.update(cfg.ppo, learned, learner, trajectory, update_key)
    flat = jax.tree.map(jnp.ravel, episodes)
    population = learner.population.tally(flat.partner, flat.team_return, flat.counted)
    # A mean over part of a period would favour what ends early; environments on their own have no period.
    due = closing if cfg.partnering.dispatch == "block" else jnp.ones((), bool)
    population = jax.tree.map(lambda new, old: jnp.where(due, new, old), population.settle(), population)
    after = after._replace(play=play, population=population, key=key)
    met = jnp.where(population.episodes > 0, population.mean_return, jnp.nan)  # nothing is shown of those never met
    of_partners = {"partner_return": met, "partner_probability": law}
    return after, Metrics(means, ppo.episode_totals(env, episodes), of_partners)


def _period(cfg: Config, env: Environment, learner: Learner):
    """Whether a partner period opens with this iteration, and whether it closes with it.

    A period of blocks lasts as many iterations as a whole episode needs. Single environments draw at their episodes'
    starts instead.
    """
    if cfg.partnering.dispatch == "env":
        return jnp.zeros((), bool), jnp.zeros((), bool)
    length = -(-env.horizon // cfg.ppo.num_steps)
    phase = learner.iteration % length
    return phase == 0, phase == length - 1
