"""What a model remembers of the tokens that it has read, and reading more of them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxscope.agents.llm.attention import KeysValues
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.span import HOLE, span
from jaxscope.types import PyTree


class Cache(NamedTuple):
    """B rows that have read different numbers of tokens into S slots.

    All rows write at the same slot, so a row that has fewer tokens to read than another is left with holes; its tokens'
    positions do not count them.
    """

    memory: tuple[PyTree, ...]
    """What each layer remembers."""
    positions: Int[Array, "B S"]
    """Position of the token in each slot, `span.HOLE` where there is none."""
    lengths: Int[Array, " B"]
    """Tokens read so far."""
    used: Int[Array, ""]
    """Slots written so far."""
    full: Bool[Array, ""]
    """Tokens were refused, as they did not fit."""


def empty(model: LanguageModel, rows: int, slots: int, dtype: str | None = None) -> Cache:
    """A cache that has read nothing.

    Args:
        slots: tokens that each row has room for, holes included.
        dtype: of what is remembered; the model's `compute` by default.
    """
    if rows < 1 or slots < 1:
        raise ValueError(f"a cache of {rows} rows and {slots} slots: must be at least 1 each")
    memory = tuple(_empty_layer(model, kind, rows, slots, dtype or model.compute) for kind in model.config.layer_types)
    zero, positions = jnp.zeros((), jnp.int32), jnp.full((rows, slots), HOLE, jnp.int32)
    return Cache(memory, positions, jnp.zeros(rows, jnp.int32), zero, jnp.zeros((), bool))


def _empty_layer(model: LanguageModel, kind: str, rows: int, slots: int, dtype: str) -> PyTree:
    config = model.config
    if kind == "linear_attention":
        return model.family.empty_memory(config, rows)
    shape = (rows, config.num_key_value_heads, slots, config.head_dim)
    return KeysValues(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))


def read(
    model: LanguageModel, params: PyTree, cache: Cache, tokens: Int[Array, "B T"], counts: Int[Array, " B"]
) -> tuple[Cache, Float[Array, "B d"]]:
    """Read the first `counts` of each row's tokens, none or some, scanning over layers.

    Returns:
        The cache, and what the head is given after each row's last token (meaningless for rows that read none). If
        the T tokens do not fit, nothing is read and the cache is `full`.
    """
    period = model.config.period
    stacked = tuple(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *cache.memory[place::period]) for place in range(period)
    )

    def layers(x, around):
        x, found = model.through(params, x, around, stacked)
        per_layer = [
            jax.tree.map(lambda leaf, at=i // period: leaf[at], found[i % period])
            for i in range(model.config.num_hidden_layers)
        ]
        return x, tuple(per_layer)

    return _read(model, params, cache, tokens, counts, layers)


def read_unrolled(
    model: LanguageModel, weights: PyTree, cache: Cache, tokens: Int[Array, "B T"], counts: Int[Array, " B"]
) -> tuple[Cache, Float[Array, "B d"]]:
    """The same with the weights of `fused.fuse`, layer after layer: faster for few tokens, slower to compile."""

    def layers(x, around):
        def each(params, x, around, memory):
            found = []
            for kind, layer, remembered in zip(model.config.layer_types, params, memory, strict=True):
                x, remembered = model.layer(kind, layer, x, around, remembered, fused=True)
                found.append(remembered)
            return x, tuple(found)

        return model.over_members(each, weights["layers"], x, around, cache.memory)

    return _read(model, weights, cache, tokens, counts, layers)


def _read(model, params, cache, tokens, counts, layers):
    length, slots = tokens.shape[1], cache.positions.shape[1]
    if length > slots:
        raise ValueError(f"{length} tokens do not fit a cache of {slots} slots")
    fits = cache.used + length <= slots
    counts = jnp.where(fits, counts, 0)
    steps = jnp.arange(length)[None]
    valid = steps < counts[:, None]
    positions = cache.lengths[:, None] + steps
    slot = jnp.minimum(cache.used, slots - length)
    written = jax.lax.dynamic_update_slice(cache.positions, jnp.where(valid, positions, HOLE), (0, slot))
    # What did not fit would be written over the last slots.
    written = jnp.where(fits, written, cache.positions)
    around = span(model.config, positions, valid, written, slot)
    x, memory = layers(model.embed(params, tokens), around)
    memory = jax.tree.map(lambda new, old: jnp.where(fits, new, old), memory, cache.memory) if length > 1 else memory
    last = jnp.take_along_axis(x, jnp.maximum(counts - 1, 0)[:, None, None], axis=1)[:, 0]
    cache = Cache(memory, written, cache.lengths + counts, cache.used + jnp.max(counts), cache.full | ~fits)
    return cache, model.normalised(params, last)
