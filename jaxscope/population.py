"""Populations: members stacked along a leading axis, with running returns and ages.

A member can be anything whose parameters are a pytree: a GRU partner, a LoRA adapter, a whole language model. Members
of one *kind* share a structure and are stacked; a population may have several kinds, and then its ids run through the
kinds in order. The scripted partners of an environment are one kind: the parameter says which script plays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxscope.types import PyTree

Ties = Literal["average", "dense"]


@struct.dataclass
class Population:
    """K members with their statistics; a pytree, so it travels through `jit`, `vmap`, `scan` and checkpoints."""

    members: tuple[PyTree, ...]  # one entry per kind, leaves [K_kind, ...]
    mean_return: Float[Array, " K"]  # of the most recent finished episodes; 0 where there were none
    episodes: Int[Array, " K"]  # finished episodes so far
    age: Int[Array, " K"]  # pushes since the member came in
    filled: Bool[Array, " K"]  # slots that hold a member
    cursor: Int[Array, ""]  # the slot that the next push takes
    tally_return: Float[Array, " K"]  # summed over episodes that are not in the mean yet
    tally_episodes: Int[Array, " K"]
    sizes: tuple[int, ...] = struct.field(pytree_node=False)  # members per kind

    @classmethod
    def stack(cls, members: Sequence[PyTree]) -> Population:
        """A full population of one kind from separate parameter pytrees."""
        if not members:
            raise ValueError("a population needs at least one member")
        return cls.stacked(jax.tree.map(lambda *leaves: jnp.stack(leaves), *members), len(members))

    @classmethod
    def stacked(cls, members: PyTree, count: int) -> Population:
        """A full population of one kind whose `count` members are stacked already, leaves `[count, ...]`."""
        return cls._with((members,), (count,), filled=True)

    @classmethod
    def create(cls, example: PyTree, capacity: int) -> Population:
        """An empty population with room for `capacity` members shaped like `example`."""
        if capacity < 1:
            raise ValueError(f"population capacity = {capacity}: must be at least 1")
        room = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), example)
        return cls._with((room,), (capacity,), filled=False)

    @classmethod
    def join(cls, *populations: Population) -> Population:
        """One population of all members, kinds and statistics kept, ids in order of the arguments."""

        def joined(field: str) -> Array:
            return jnp.concatenate([getattr(p, field) for p in populations])

        return cls(
            members=sum((p.members for p in populations), ()),
            sizes=sum((p.sizes for p in populations), ()),
            mean_return=joined("mean_return"),
            episodes=joined("episodes"),
            age=joined("age"),
            filled=joined("filled"),
            cursor=populations[0].cursor if len(populations) == 1 else jnp.zeros((), jnp.int32),
            tally_return=joined("tally_return"),
            tally_episodes=joined("tally_episodes"),
        )

    @classmethod
    def _with(cls, members: tuple[PyTree, ...], sizes: tuple[int, ...], filled: bool) -> Population:
        k = sum(sizes)
        return cls(
            members=members,
            sizes=sizes,
            mean_return=jnp.zeros(k),
            episodes=jnp.zeros(k, jnp.int32),
            age=jnp.zeros(k, jnp.int32),
            filled=jnp.full(k, filled),
            cursor=jnp.zeros((), jnp.int32),
            tally_return=jnp.zeros(k),
            tally_episodes=jnp.zeros(k, jnp.int32),
        )

    @property
    def capacity(self) -> int:
        """K, filled or not."""
        return sum(self.sizes)

    def kind(self, ids: Int[Array, "*n"]) -> Int[Array, "*n"]:
        """The kind of each member."""
        of_member = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return jnp.asarray(of_member, jnp.int32)[ids]

    def gather(self, ids: Int[Array, "*n"], kind: int = 0) -> PyTree:
        """Parameters of the given members, leaves `[*n, ...]`.

        In a population of several kinds only one kind's rows can be gathered at a time: ids of other kinds give that
        kind's nearest member, to be masked by the caller with `kind(ids)`.
        """
        start = sum(self.sizes[:kind])
        rows = jnp.clip(ids - start, 0, self.sizes[kind] - 1)
        return jax.tree.map(lambda leaf: leaf[rows], self.members[kind])

    def push(self, member: PyTree) -> Population:
        """Put `member` into the oldest slot (first in, first out); its statistics start anew.

        Raises:
            ValueError: the population has several kinds, and so no single ring of slots.
        """
        if len(self.sizes) != 1:
            raise ValueError(f"only a population of one kind can be pushed to; this one has {len(self.sizes)} kinds")
        slot = self.cursor
        put = lambda room, leaf: room.at[slot].set(leaf)  # noqa: E731
        return dataclasses.replace(
            self,
            members=(jax.tree.map(put, self.members[0], member),),
            mean_return=self.mean_return.at[slot].set(0.0),
            episodes=self.episodes.at[slot].set(0),
            tally_return=self.tally_return.at[slot].set(0.0),
            tally_episodes=self.tally_episodes.at[slot].set(0),
            age=(self.age + self.filled).at[slot].set(0),
            filled=self.filled.at[slot].set(True),
            cursor=(slot + 1) % self.capacity,
        )

    def sample(self, key: PRNGKeyArray, n: int) -> Int[Array, " n"]:
        """`n` ids, uniform over the members; see `systematic`. There must be a member."""
        return systematic(key, self.filled / jnp.sum(self.filled), n)

    def sample_ranked(self, key: PRNGKeyArray, n: int, beta: float = 1.0, ties: Ties = "average") -> Int[Array, " n"]:
        """`n` ids by `ranked_probabilities`; see `systematic`."""
        return systematic(key, self.ranked_probabilities(beta, ties), n)

    def ranked_probabilities(self, beta: float = 1.0, ties: Ties = "average") -> Float[Array, " K"]:
        """Rank-prioritised law over the members; those never met count as the worst."""
        returns = jnp.where(self.episodes > 0, self.mean_return, -jnp.inf)
        return rank_law(returns, self.filled, beta, ties)

    def tally(self, ids: Int[Array, " M"], returns: Float[Array, " M"], finished: Bool[Array, " M"]) -> Population:
        """Count finished episodes, to enter the means at the next `settle`.

        Args:
            ids: the member met in each row.
            returns: undiscounted team return of the episode, read where `finished`.
            finished: rows that hold a complete episode.
        """
        counts = jax.ops.segment_sum(finished.astype(jnp.int32), ids, self.capacity)
        sums = jax.ops.segment_sum(jnp.where(finished, returns, 0.0), ids, self.capacity)
        return dataclasses.replace(
            self, tally_return=self.tally_return + sums, tally_episodes=self.tally_episodes + counts
        )

    def settle(self, decay: float = 0.0) -> Population:
        """Let the tallied episodes enter the means; members without any keep theirs.

        Args:
            decay: weight of the old mean; 0 keeps the mean of the most recent episodes only (PopGen, appendix B.1).
        """
        counted = self.tally_episodes > 0
        recent = self.tally_return / jnp.maximum(self.tally_episodes, 1)
        mixed = jnp.where(self.episodes > 0, decay * self.mean_return + (1.0 - decay) * recent, recent)
        return dataclasses.replace(
            self,
            mean_return=jnp.where(counted, mixed, self.mean_return),
            episodes=self.episodes + self.tally_episodes,
            tally_return=jnp.zeros_like(self.tally_return),
            tally_episodes=jnp.zeros_like(self.tally_episodes),
        )

    def record(
        self, ids: Int[Array, " M"], returns: Float[Array, " M"], finished: Bool[Array, " M"], decay: float = 0.0
    ) -> Population:
        """`tally` and `settle` at once."""
        return self.tally(ids, returns, finished).settle(decay)


def rank_law(
    returns: Float[Array, " K"], filled: Bool[Array, " K"] | None = None, beta: float = 1.0, ties: Ties = "average"
) -> Float[Array, " K"]:
    """p_k = r_k^beta / sum_j r_j^beta, where the highest return has rank r = 1 and the lowest the largest rank.

    Source: MEP (Zhao et al. 2023), section 4.3, as PopGen uses it (appendix B.1). Ranks come from comparisons only, so
    negative and zero returns are fine. `average` ties share their mean rank, which keeps the largest probability at
    2 / (K + 1) for beta = 1; `dense` ties share one rank and leave no gap, as MEP's code does.
    """
    filled = jnp.ones(returns.shape, bool) if filled is None else filled
    above = (returns[None, :] > returns[:, None]) & filled[None, :]  # [k, j]: j is better than k
    equal = (returns[None, :] == returns[:, None]) & filled[None, :]
    if ties == "average":
        rank = 0.5 + jnp.sum(above, axis=1) + 0.5 * jnp.sum(equal, axis=1)
    elif ties == "dense":
        # A value is counted at the first member that has it.
        earlier = jnp.arange(returns.size)[None, :] < jnp.arange(returns.size)[:, None]
        first = filled & ~jnp.any(equal & earlier, axis=1)
        rank = 1.0 + jnp.sum(above & first[None, :], axis=1)
    else:
        raise ValueError(f"ties = {ties!r}: must be 'average' or 'dense'")
    weight = jnp.where(filled, rank**beta, 0.0)
    return weight / jnp.sum(weight)


def systematic(key: PRNGKeyArray, probabilities: Float[Array, " K"], n: int) -> Int[Array, " n"]:
    """`n` draws whose counts are within one of `n p_k`, in random order; every single draw has law `p`.

    One uniform offset places `n` equally spaced points on the cumulative law (systematic resampling), which has less
    variance than independent draws.
    """
    offset_key, order_key = jax.random.split(key)
    points = (jnp.arange(n) + jax.random.uniform(offset_key)) / n
    return jax.random.permutation(order_key, inverse_law(probabilities, points))


def inverse_law(probabilities: Float[Array, " K"], points: Float[Array, "*n"]) -> Int[Array, "*n"]:
    """The member at each point of [0, 1) on the cumulative law; members of probability 0 are never hit."""
    edges = jnp.cumsum(probabilities)
    below = points[..., None] >= edges.reshape((1,) * points.ndim + (-1,))
    last = probabilities.shape[0] - 1 - jnp.argmax(probabilities[::-1] > 0)  # guards against rounding of the last edge
    return jnp.minimum(jnp.sum(below, axis=-1), last)
