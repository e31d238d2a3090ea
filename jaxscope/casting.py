"""Who sits where: drawing partners and seats, and keeping them until the next draw.

`block` dispatch draws one partner per block of environments when a partner period begins and keeps it for that period;
games that end earlier start again with the same partner, and those still running at the period's end are truncated.
Only the first episode of each environment in a period enters a mean of returns: a mean over all would favour short
episodes. `env` dispatch draws a partner and a seat for every single environment at every episode's start, exactly as
the law says, and gathers parameters per environment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from jaxscope import dispatch
from jaxscope.population import Population, Ties, inverse_law
from jaxscope.types import Policy, PyTree


class Casting(NamedTuple):
    """Partners, seats and partner memories of B environments; N = B units in `env` dispatch, else blocks."""

    partner: Int[Array, " N"]  # member ids
    seat: Int[Array, " B"]  # the learner's seat
    memory: tuple[PyTree, ...]  # per kind, leaves [A - 1, B, ...]
    countable: Bool[Array, " B"]  # the running episode's return may enter a mean


@dataclass(frozen=True)
class Partnering:
    """How partners are drawn and served."""

    dispatch: Literal["block", "env"] = "block"
    """`block`: one partner per block of environments. `env`: one per environment, the exact and slow reference."""
    block_size: int = 16
    """Environments per block."""
    beta: float = 1.0
    """Rank-prioritised sampling: 0 is uniform, 1 draws the worst of K partners with probability 2 / (K + 1)."""
    ties: Ties = "average"
    """Ranks of equal returns: `average` shares the mean rank, `dense` one rank without gaps."""

    def __post_init__(self) -> None:
        if self.dispatch not in ("block", "env"):
            raise ValueError(f"dispatch = {self.dispatch!r}: must be 'block' or 'env'")
        if self.block_size < 1:
            raise ValueError(f"block_size = {self.block_size}: must be at least 1")
        if self.beta < 0:
            raise ValueError(f"beta = {self.beta}: must not be negative")
        if self.ties not in ("average", "dense"):
            raise ValueError(f"ties = {self.ties!r}: must be 'average' or 'dense'")

    def units(self, num_envs: int) -> int:
        """Partners in play at a time."""
        if self.dispatch == "env":
            return num_envs
        if num_envs % self.block_size:
            raise ValueError(f"num_envs = {num_envs} must be a multiple of block_size = {self.block_size}")
        return num_envs // self.block_size

    def ids(self, casting: Casting, num_envs: int) -> Int[Array, " B"]:
        """The partner of each environment."""
        return jnp.repeat(casting.partner, num_envs // casting.partner.shape[0])

    def acting(self, policies: tuple[Policy, ...], population: Population, casting: Casting) -> Callable:
        """A function `(casting, view, reset, keys) -> actions [P, B], memory` for the steps of one rollout.

        Blocks keep their partner throughout, so their parameters are gathered here, once.
        """
        if self.dispatch == "block":
            parts = dispatch.cast(policies, population, casting.partner)

        def act(casting, view, reset, keys):
            if self.dispatch == "block":
                memory = dispatch.restart(parts, casting.memory, reset)
                return dispatch.block_actions(policies, parts, memory, view, keys)
            own = dispatch.cast(policies, population, casting.partner)
            memory = dispatch.restart(own, casting.memory, reset)
            return dispatch.env_actions(policies, own, memory, view, keys)

        return act

    def redrawing(
        self, population: Population, seats: int
    ) -> Callable[[Casting, Bool[Array, " B"], PRNGKeyArray], Casting]:
        """A function that updates a casting after a step, given which environments begin an episode next."""
        if self.dispatch == "block":
            return lambda casting, reset, key: casting._replace(countable=casting.countable & ~reset)
        law = population.ranked_probabilities(self.beta, self.ties)

        def redraw(casting: Casting, reset: Bool[Array, " B"], key: PRNGKeyArray) -> Casting:
            partner_key, seat_key = jax.random.split(key)
            partner = inverse_law(law, jax.random.uniform(partner_key, reset.shape))
            seat = jax.random.randint(seat_key, reset.shape, 0, seats)
            return casting._replace(
                partner=jnp.where(reset, partner, casting.partner), seat=jnp.where(reset, seat, casting.seat)
            )

        return redraw


def recast(
    policies: tuple[Policy, ...],
    population: Population,
    partnering: Partnering,
    seats: int,
    num_envs: int,
    key: PRNGKeyArray,
) -> Casting:
    """Draw partners and seats anew for all environments.

    Within a block the learner takes every seat equally often (as nearly as the sizes allow).
    """
    partner_key, seat_key = jax.random.split(key)
    units = partnering.units(num_envs)
    partner = population.sample_ranked(partner_key, units, partnering.beta, partnering.ties)
    offset = jax.random.randint(seat_key, (units, 1), 0, seats)
    seat = ((offset + jnp.arange(num_envs // units)[None, :]) % seats).reshape(-1)
    parts = dispatch.cast(policies, population, partner)
    memory = dispatch.initial_memory(parts, seats - 1, num_envs)
    return Casting(partner, seat, memory, jnp.ones(num_envs, bool))
