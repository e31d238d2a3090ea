"""Gated delta rule: linear attention that remembers a matrix a head (Yang et al., 2024, Gated Delta Networks)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from einops import rearrange
from flax import nnx
from jaxtyping import Array, Float, Int

from jaxscope.agents.llm.config import DeltaNetConfig, ModelConfig
from jaxscope.agents.llm.linear import Build, Fused
from jaxscope.agents.llm.mlp import ACTIVATIONS
from jaxscope.agents.llm.norm import RMSNorm
from jaxscope.agents.llm.span import Span

#: Tokens that are worked out at once; memory grows with their number times that of all tokens.
CHUNK = 64


class DeltaMemory(NamedTuple):
    """What one layer remembers: as much after any number of tokens."""

    conv: Float[Array, "B C w"]
    """What the convolution was given for the last `w` tokens, one fewer than its kernel is wide."""
    state: Float[Array, "B H k v"]
    """From keys to values, of every value head; always float32."""


def empty_memory(config: ModelConfig, rows: int) -> DeltaMemory:
    """The memory of a layer that has read nothing."""
    assert config.delta_net is not None
    return _empty(config.delta_net, rows)


def _empty(sizes: DeltaNetConfig, rows: int) -> DeltaMemory:
    heads, key, value = sizes.linear_num_value_heads, sizes.linear_key_head_dim, sizes.linear_value_head_dim
    return DeltaMemory(
        jnp.zeros((rows, _channels(sizes), sizes.linear_conv_kernel_dim - 1)), jnp.zeros((rows, heads, key, value))
    )


def _channels(sizes: DeltaNetConfig) -> int:
    """Numbers of a token's queries, keys and values."""
    keys = sizes.linear_num_key_heads * sizes.linear_key_head_dim
    return 2 * keys + sizes.linear_num_value_heads * sizes.linear_value_head_dim


class DeltaNet(nnx.Module):
    """A layer of linear attention: short convolution, gated delta rule, gated norm.

    Padding changes neither part of its memory.
    """

    def __init__(self, config: ModelConfig, build: Build):
        assert config.delta_net is not None
        self.sizes, self.activation = config.delta_net, config.hidden_act
        heads, width = self.sizes.linear_num_value_heads, config.hidden_size
        values = heads * self.sizes.linear_value_head_dim
        parts = {"in_proj_qkv": _channels(self.sizes), "in_proj_z": values, "in_proj_b": heads, "in_proj_a": heads}
        if build.fused:
            self.in_proj = Fused(build, width, parts, False)
        else:
            self.in_proj = None
            self.in_proj_qkv = build.linear("in_proj_qkv", width, parts["in_proj_qkv"])
            self.in_proj_z = build.linear("in_proj_z", width, values)
            self.in_proj_b = build.linear("in_proj_b", width, heads)
            self.in_proj_a = build.linear("in_proj_a", width, heads)
        self.conv1d = ShortConvolution(_channels(self.sizes), self.sizes.linear_conv_kernel_dim, build)
        self.dt_bias = nnx.Param(jnp.ones(heads))
        self.A_log = nnx.Param(jnp.log(jax.random.uniform(build.rngs.params(), (heads,), minval=0.01, maxval=16.0)))
        self.norm = RMSNorm(self.sizes.linear_value_head_dim, config.rms_norm_eps)
        self.out_proj = build.linear("out_proj", values, width)

    def __call__(
        self, x: Float[Array, "B T d"], span: Span, memory: DeltaMemory | None
    ) -> tuple[Float[Array, "B T d"], DeltaMemory | None]:
        mixed, gate, strength, fading = self.project(x)
        before = _empty(self.sizes, x.shape[0]) if memory is None else memory
        mixed, conv = self.conv1d(mixed, before.conv, jnp.sum(span.valid, axis=1))
        keys = self.sizes.linear_num_key_heads * self.sizes.linear_key_head_dim
        query, key, value = jnp.split(ACTIVATIONS[self.activation](mixed).astype(x.dtype), [keys, 2 * keys], axis=-1)
        query, key = (
            rearrange(part, "B T (K k) -> B T K k", k=self.sizes.linear_key_head_dim) for part in (query, key)
        )
        value, gate = (
            rearrange(part, "B T (H v) -> B T H v", v=self.sizes.linear_value_head_dim) for part in (value, gate)
        )
        valid = span.valid[..., None]
        strength = jnp.where(valid, jax.nn.sigmoid(strength.astype(jnp.float32)), 0.0)
        rate = jnp.exp(_row(self.A_log)) * jax.nn.softplus(fading.astype(jnp.float32) + _row(self.dt_bias))
        read, state = gated_delta_rule(query, key, value, jnp.where(valid, -rate, 0.0), strength, before.state)
        read = (self.norm(read) * jax.nn.silu(gate.astype(jnp.float32))).astype(x.dtype)
        read = self.out_proj(rearrange(read, "B T H v -> B T (H v)"))
        return read, None if memory is None else DeltaMemory(conv, state)

    def project(self, x: Float[Array, "B T d"]):
        """Queries with keys and values; the gate of the output; how strongly tokens write; how fast memory fades."""
        if self.in_proj is not None:
            return self.in_proj(x)
        return self.in_proj_qkv(x), self.in_proj_z(x), self.in_proj_b(x), self.in_proj_a(x)


def _row(param: nnx.Param) -> Float[Array, "1 1 H"]:
    return param[...].astype(jnp.float32)[None, None]


class ShortConvolution(nnx.Module):
    """Every channel's last few tokens, weighted: causal, without a bias, in float32."""

    def __init__(self, channels: int, width: int, build: Build):
        self.weight = nnx.Param(jax.random.normal(build.rngs.params(), (channels, 1, width)) * build.std)

    def __call__(
        self, x: Float[Array, "B T C"], before: Float[Array, "B C w"], counts: Int[Array, " B"]
    ) -> tuple[Float[Array, "B T C"], Float[Array, "B C w"]]:
        """The weighted tokens, and what `before` is once each row's first `counts` tokens have been read."""
        length, kept = x.shape[1], before.shape[2]
        line = jnp.concatenate([rearrange(before, "B C w -> B w C").astype(x.dtype), x], axis=1)
        weight = self.weight[...].astype(jnp.float32)[:, 0].T  # [w + 1, C]
        mixed = jnp.zeros(x.shape)
        # A convolution of so many groups is far slower than these sums on CPU.
        for at in range(kept + 1):
            mixed += line[:, at : at + length] * weight[at][None, None]
        after = jax.vmap(lambda row, count: jax.lax.dynamic_slice_in_dim(row, count, kept))(line, counts)
        return mixed, rearrange(after, "B w C -> B C w").astype(before.dtype)


def gated_delta_rule(
    query: Float[Array, "B T K k"],
    key: Float[Array, "B T K k"],
    value: Float[Array, "B T H v"],
    decay: Float[Array, "B T H"],
    strength: Float[Array, "B T H"],
    state: Float[Array, "B H k v"],
) -> tuple[Float[Array, "B T H v"], Float[Array, "B H k v"]]:
    """What each token reads, and the state after all of them; both in float32.

    A token lets the state fade by `exp(decay)`, moves what its key reads a share `strength` of the way to its value,
    and then reads with its query. Keys and queries are brought to length 1, and queries divided by `sqrt(k)`. Value
    heads share key heads, H / K in a row each. A token with decay and strength 0 changes nothing.
    """
    if query.shape[1] > 1:
        return in_chunks(query, key, value, decay, strength, state)
    read, state = one_token(query[:, 0], key[:, 0], value[:, 0], decay[:, 0], strength[:, 0], state)
    return read[:, None], state


def one_token(
    query: Float[Array, "B K k"],
    key: Float[Array, "B K k"],
    value: Float[Array, "B H v"],
    decay: Float[Array, "B H"],
    strength: Float[Array, "B H"],
    state: Float[Array, "B H k v"],
) -> tuple[Float[Array, "B H v"], Float[Array, "B H k v"]]:
    """`gated_delta_rule` of one token, which reads the state once and writes it once."""
    query, key = _unit(query, query.shape[-1] ** -0.5), _unit(key)
    alike = jnp.sum(query * key, axis=-1)[:, :, None, None]
    query, key = query[:, :, None, :, None], key[:, :, None, :, None]  # [B, K, G, k, v]
    value, decay, strength, grouped = (_grouped(leaf, query.shape[1]) for leaf in (value, decay, strength, state))
    faded = grouped * jnp.exp(decay)[..., None, None]
    change = (value - jnp.sum(key * faded, axis=-2)) * strength[..., None]
    read = jnp.sum(query * faded, axis=-2) + alike * change
    written = faded + key * change[..., None, :]
    return rearrange(read, "B K G v -> B (K G) v"), written.reshape(state.shape)


def in_chunks(
    query: Float[Array, "B T K k"],
    key: Float[Array, "B T K k"],
    value: Float[Array, "B T H v"],
    decay: Float[Array, "B T H"],
    strength: Float[Array, "B T H"],
    state: Float[Array, "B H k v"],
) -> tuple[Float[Array, "B T H v"], Float[Array, "B H k v"]]:
    """`gated_delta_rule`, chunk after chunk; the backward pass keeps the states between and makes the rest anew."""
    length = query.shape[1]
    size = min(CHUNK, length)

    def chunks(leaf):
        leaf = jnp.pad(leaf, [(0, 0), (0, -length % size)] + [(0, 0)] * (leaf.ndim - 2))
        return rearrange(leaf, "B (N c) H ... -> N B H c ...", c=size)

    # The scan's steps are not merged with their recomputation, so nothing has to keep the compiler from it.
    step = jax.checkpoint(_chunk, prevent_cse=False)
    state, read = jax.lax.scan(step, state, tuple(chunks(leaf) for leaf in (query, key, value, decay, strength)))
    return rearrange(read, "N B H c v -> B (N c) H v")[:, :length], state


def _chunk(state: Float[Array, "B H k v"], here):
    """One chunk. Its tokens' changes of the state depend on each other: a triangular system of equations."""
    query, key, value, decay, strength = here
    query, key = _unit(query, query.shape[-1] ** -0.5), _unit(key)
    value, decay, strength, grouped = (_grouped(leaf, key.shape[1]) for leaf in (value, decay, strength, state))
    faded = jnp.cumsum(decay, axis=-1)  # since the chunk began
    causal = jnp.tril(jnp.ones((decay.shape[-1],) * 2, bool))[None, None, None]
    # The exponent is masked, not its result: above the diagonal it would overflow.
    between = jnp.exp(jnp.where(causal, faded[..., :, None] - faded[..., None, :], -jnp.inf))
    from_start, to_end = jnp.exp(faded)[..., None], jnp.exp(faded[..., -1:] - faded)[..., None]

    system = _product("BKtk,BKsk->BKts", key, key)[:, :, None] * between * strength[..., None]
    wanted = (value - from_start * _product("BKtk,BKGkv->BKGtv", key, grouped)) * strength[..., None]
    changes = _solved(jnp.tril(system, -1), wanted)

    weights = _product("BKtk,BKsk->BKts", query, key)[:, :, None] * between
    read = from_start * _product("BKtk,BKGkv->BKGtv", query, grouped)
    read += _product("BKGts,BKGsv->BKGtv", weights, changes)
    written = grouped * from_start[..., -1:, :] + _product("BKsk,BKGsv->BKGkv", key, to_end * changes)
    return written.reshape(state.shape), rearrange(read, "B K G c v -> B (K G) c v")


def _solved(below: Float[Array, "*b c c"], wanted: Float[Array, "*b c v"]) -> Float[Array, "*b c v"]:
    """`(I + below)^-1 wanted`, with `below` under the diagonal only.

    By products of matrices: the solvers of LAPACK, one small system after another, stall on CPUs that are busy.
    """
    inverse = _inverse(jax.lax.stop_gradient(below))
    return jax.lax.custom_linear_solve(
        lambda x: x + _product("...ts,...sv->...tv", below, x),
        wanted,
        solve=lambda _, x: _product("...ts,...sv->...tv", inverse, x),
        transpose_solve=lambda _, x: _product("...st,...sv->...tv", inverse, x),
    )


def _inverse(below: Float[Array, "*b c c"]) -> Float[Array, "*b c c"]:
    """`(I + below)^-1`, from those of diagonal blocks of 1, 2, 4 ... rows.

    Of two neighbours with inverses X and Z and a block Y under X and left of Z, together they have -Z Y X there.
    """
    size = below.shape[-1]
    at = np.arange(size)

    def joining(block: int):
        pair, own = at // (2 * block), at // block
        joins = (pair[:, None] == pair) & (own[:, None] != own)
        return jnp.where(np.expand_dims(joins, tuple(range(below.ndim - 2))), below, 0.0)

    inverse = jnp.eye(size).reshape((1,) * (below.ndim - 2) + (size, size)) - joining(1)
    block = 2
    while block < size:
        right = _product("...ts,...sv->...tv", joining(block), inverse)
        inverse -= _product("...ts,...sv->...tv", inverse, right)
        block *= 2
    return inverse


def _product(form: str, a: Array, b: Array) -> Array:
    # In full float32 on every device: errors of the state would add up over tokens.
    return jnp.einsum(form, a, b, precision=jax.lax.Precision.HIGHEST)


def _grouped(leaf: Float[Array, "B H *r"], key_heads: int) -> Float[Array, "B K G *r"]:
    return rearrange(leaf, "B (K G) ... -> B K G ...", K=key_heads).astype(jnp.float32)


def _unit(x: Float[Array, "*b k"], length: float = 1.0) -> Float[Array, "*b k"]:
    wide = x.astype(jnp.float32)
    return wide * (jax.lax.rsqrt(jnp.sum(jnp.square(wide), axis=-1, keepdims=True) + 1e-6) * length)
