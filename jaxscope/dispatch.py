"""Acting for many partners at once: which parameters serve which environment.

`block_actions` gives one partner to each block of environments, so that a learned partner is a matrix product over its
block. `env_actions` gathers parameters for every single environment: 25 to 50 times slower, and the exact reference.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from jaxscope.population import Population
from jaxscope.types import Policy, PyTree, View


class Cast(NamedTuple):
    """Partners with their parameters at hand, one per unit: a block of environments, or an environment."""

    params: tuple[PyTree, ...]  # per kind, leaves [N, ...]
    start: tuple[PyTree, ...]  # per kind, the memory an episode begins with, leaves [N, ...]
    kind: Int[Array, " N"]


def cast(policies: tuple[Policy, ...], population: Population, ids: Int[Array, " N"]) -> Cast:
    """Gather what the members `ids` need to act."""
    params = tuple(population.gather(ids, kind) for kind in range(len(policies)))
    start = tuple(
        jax.vmap(policy.initial_memory, axis_size=ids.shape[0])(p) for policy, p in zip(policies, params, strict=True)
    )
    return Cast(params, start, population.kind(ids))


def initial_memory(parts: Cast, seats: int, num_envs: int) -> tuple[PyTree, ...]:
    """Memories at the start of an episode, per kind, leaves `[P, B, ...]`, for `seats` = P partner seats."""
    spread = lambda rows: jnp.broadcast_to(rows, (seats, *rows.shape[1:]))  # noqa: E731
    return jax.tree.map(spread, _start_rows(parts, num_envs))


def restart(parts: Cast, memory: tuple[PyTree, ...], reset: Bool[Array, " B"]) -> tuple[PyTree, ...]:
    """Memories `[P, B, ...]` with those of environments that begin an episode set to their start."""

    def choose(fresh: Array, old: Array) -> Array:
        return jnp.where(reset.reshape((1, -1) + (1,) * (old.ndim - 2)), fresh, old)

    return jax.tree.map(choose, _start_rows(parts, reset.shape[0]), memory)


def _start_rows(parts: Cast, num_envs: int) -> tuple[PyTree, ...]:
    """First memories per environment: leaves `[1, B, ...]`."""
    size = num_envs // parts.kind.shape[0]
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, size, axis=0)[None], parts.start)


def block_actions(
    policies: tuple[Policy, ...],
    parts: Cast,
    memory: tuple[PyTree, ...],
    view: View,
    keys: PRNGKeyArray,
) -> tuple[Array, tuple[PyTree, ...]]:
    """Actions `[P, B]` of P partner seats in B environments, one partner per block of B / N environments.

    Every kind acts everywhere and each unit keeps its own kind's action, so all kinds can share the unit's key.
    `view` has leaves `[P, B, ...]` (its state `[B, ...]`), `memory` per kind `[P, B, ...]`, `keys` `[P, B]`.
    """
    blocks = parts.kind.shape[0]
    split = lambda tree: jax.tree.map(lambda x: rearrange(x, "p (n e) ... -> p n e ...", n=blocks), tree)  # noqa: E731
    merge = lambda tree: jax.tree.map(lambda x: rearrange(x, "p n e ... -> p (n e) ..."), tree)  # noqa: E731
    state = jax.tree.map(lambda x: rearrange(x, "(n e) ... -> n e ...", n=blocks), view.state)
    seen = View(split(view.obs), state, split(view.seat))
    keys = keys.reshape(keys.shape[0], blocks, -1)

    actions, memories = [], []
    for policy, params, mem in zip(policies, parts.params, memory, strict=True):
        act = jax.vmap(policy.act, in_axes=(None, 0, 0, 0))  # the environments of a block share the parameters
        act = jax.vmap(act)  # blocks
        act = jax.vmap(act, in_axes=(None, 0, View(0, None, 0), 0))  # type: ignore[arg-type]  # seats
        action, mem = act(params, split(mem), seen, jax.random.clone(keys))
        actions.append(action)
        memories.append(merge(mem))
    return merge(_of_kind(actions, parts.kind[None, :, None])), tuple(memories)


def env_actions(
    policies: tuple[Policy, ...],
    parts: Cast,
    memory: tuple[PyTree, ...],
    view: View,
    keys: PRNGKeyArray,
) -> tuple[Array, tuple[PyTree, ...]]:
    """`block_actions` for one partner per environment: every environment with parameters of its own."""
    actions, memories = [], []
    for policy, params, mem in zip(policies, parts.params, memory, strict=True):
        act = jax.vmap(policy.act)
        act = jax.vmap(act, in_axes=(None, 0, View(0, None, 0), 0))  # type: ignore[arg-type]  # seats
        action, mem = act(params, mem, view, jax.random.clone(keys))
        actions.append(action)
        memories.append(mem)
    return _of_kind(actions, parts.kind[None, :]), tuple(memories)


def _of_kind(actions: list[Array], kind: Int[Array, ...]) -> Array:
    """The actions that each unit's own kind chose."""
    chosen = actions[0]
    for index, action in enumerate(actions[1:], start=1):
        of_this = (kind == index).reshape(kind.shape + (1,) * (action.ndim - kind.ndim))
        chosen = jnp.where(of_this, action, chosen)
    return chosen
