"""Attention with grouped queries, rotary positions and a cache of keys and values."""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from flax import nnx
from jaxtyping import Array, Bool, Float

from jaxscope.agents.llm.config import LayerType, ModelConfig
from jaxscope.agents.llm.linear import Build, Fused
from jaxscope.agents.llm.norm import RMSNorm
from jaxscope.agents.llm.rotary import rotate
from jaxscope.agents.llm.span import Span

QueryNorm = Literal["none", "head", "width"]


class KeysValues(NamedTuple):
    """What one layer remembers of S slots. Slots before heads' numbers, so that one head's keys lie together."""

    keys: Float[Array, "B K S h"]
    values: Float[Array, "B K S h"]


class Attention(nnx.Module):
    """Causal attention of a kind of layer.

    Args:
        qkv_bias, out_bias: whether the projections have one.
        query_norm: of queries and keys before they turn: `head` by head, over the whole `width`, or `none`.
        gated: the output is multiplied by a sigmoid that the query projection also makes, head by head.
        from_zero: norms store their weight less one.
    """

    def __init__(
        self,
        config: ModelConfig,
        build: Build,
        kind: LayerType,
        *,
        qkv_bias: bool,
        out_bias: bool,
        query_norm: QueryNorm = "none",
        gated: bool = False,
        from_zero: bool = False,
    ):
        heads, kv_heads, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.kind, self.size, self.gated, self.query_norm = kind, size, gated, query_norm
        width, query = config.hidden_size, heads * size * (2 if gated else 1)
        if build.fused:
            parts = {"q_proj": query, "k_proj": kv_heads * size, "v_proj": kv_heads * size}
            self.qkv = Fused(build, width, parts, qkv_bias)
        else:
            self.qkv = None
            self.q_proj = build.linear("q_proj", width, query, qkv_bias)
            self.k_proj = build.linear("k_proj", width, kv_heads * size, qkv_bias)
            self.v_proj = build.linear("v_proj", width, kv_heads * size, qkv_bias)
        self.o_proj = build.linear("o_proj", heads * size, width, out_bias)
        if query_norm != "none":
            whole = query_norm == "width"
            self.q_norm = RMSNorm(heads * size if whole else size, config.rms_norm_eps, from_zero=from_zero)
            self.k_norm = RMSNorm(kv_heads * size if whole else size, config.rms_norm_eps, from_zero=from_zero)

    def __call__(
        self, x: Float[Array, "B T d"], span: Span, memory: KeysValues | None
    ) -> tuple[Float[Array, "B T d"], KeysValues | None]:
        query, key, value, gate = self.project(x)
        turn = span.rotations[self.kind]
        query, key = rotate(query, turn), rotate(key, turn)
        key, value = rearrange(key, "B T K h -> B K T h"), rearrange(value, "B T K h -> B K T h")
        if memory is not None:
            memory = KeysValues(_written(memory.keys, key, span), _written(memory.values, value, span))
            key, value = memory
        mixed = attend(query, key.astype(query.dtype), value.astype(query.dtype), span.masks[self.kind])
        return self.o_proj(mixed if gate is None else mixed * jax.nn.sigmoid(gate)), memory

    def project(self, x: Float[Array, "B T d"]):
        """Queries, keys and values by head, normalised but not turned; and the gate of the output, if any."""
        query, key, value = (self.q_proj(x), self.k_proj(x), self.v_proj(x)) if self.qkv is None else self.qkv(x)
        gate = None
        if self.gated:
            query, gate = jnp.split(rearrange(query, "B T (H h) -> B T H h", h=2 * self.size), 2, axis=-1)
            query, gate = rearrange(query, "B T H h -> B T (H h)"), rearrange(gate, "B T H h -> B T (H h)")
        if self.query_norm == "width":
            query, key = self.q_norm(query), self.k_norm(key)
        query, key, value = (rearrange(part, "B T (H h) -> B T H h", h=self.size) for part in (query, key, value))
        if self.query_norm == "head":
            query, key = self.q_norm(query), self.k_norm(key)
        return query, key, value, gate


def attend(
    query: Float[Array, "B T H h"],
    key: Float[Array, "B K S h"],
    value: Float[Array, "B K S h"],
    mask: Bool[Array, "B T S"],
) -> Float[Array, "B T o"]:
    """Softmax attention; the softmax is in float32. A row of the mask that shows nothing gives a finite result."""
    query = rearrange(query, "B T (K G) h -> B K G T h", K=key.shape[1]) * jnp.asarray(
        query.shape[-1] ** -0.5, query.dtype
    )
    if query.shape[3] == 1:
        mixed = jax.lax.platform_dependent(
            query[:, :, :, 0], key, value, mask[:, 0], cpu=_one_by_sums, default=_one_by_products
        )
        return rearrange(mixed, "B K G h -> B 1 (K G h)")
    scores = jnp.einsum("BKGTh,BKSh->BKGTS", query, key)
    weights = _softmax(scores, mask[:, None, None]).astype(query.dtype)
    return rearrange(jnp.einsum("BKGTS,BKSh->BKGTh", weights, value), "B K G T h -> B T (K G h)")


def _one_by_products(query, key, value, mask):
    weights = _softmax(jnp.einsum("BKGh,BKSh->BKGS", query, key), mask[:, None, None])
    return jnp.einsum("BKGS,BKSh->BKGh", weights.astype(query.dtype), value)


def _one_by_sums(query, key, value, mask):
    """One query a row, as multiplications and sums: on CPU faster than many small products of matrices."""
    scores = jnp.sum(query[:, :, :, None] * key[:, :, None], axis=-1)
    weights = _softmax(scores, mask[:, None, None]).astype(query.dtype)
    return jnp.sum(weights[..., None] * value[:, :, None], axis=-2)


def _softmax(scores: Array, mask: Array) -> Array:
    # A large finite number, so that rows of padding, which see nothing, do not become NaN.
    return jax.nn.softmax(jnp.where(mask, scores.astype(jnp.float32), -1e30), axis=-1)


def _written(store: Float[Array, "B K S h"], new: Float[Array, "B K T h"], span: Span) -> Float[Array, "B K S h"]:
    """Only tokens are written: padding may stand where there are tokens already, in a cache that is full."""
    assert span.slot is not None
    old = jax.lax.dynamic_slice_in_dim(store, span.slot, new.shape[2], axis=2)
    new = jnp.where(span.valid[:, None, :, None], new.astype(store.dtype), old)
    return jax.lax.dynamic_update_slice_in_dim(store, new, span.slot, axis=2)
