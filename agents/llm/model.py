"""The language model: static, hashable; its weights are a pytree kept outside."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxscope import registry
from jaxscope.agents.llm import head
from jaxscope.agents.llm.config import FAMILIES, LayerType, ModelConfig
from jaxscope.agents.llm.linear import ALL_LINEAR, Build, Linear, LoraConfig
from jaxscope.agents.llm.lora import axes_of_members, is_adapter
from jaxscope.agents.llm.norm import RMSNorm
from jaxscope.agents.llm.span import Span, span
from jaxscope.types import PyTree

Remat = Literal["none", "products", "layers"]
Compute = Literal["float32", "bfloat16"]


class Frame(nnx.Module):
    """What stands around the layers."""

    def __init__(self, config: ModelConfig, build: Build, from_zero: bool):
        shape = (config.vocab_size, config.hidden_size)
        self.embed_tokens = nnx.Embed(*shape, rngs=build.rngs)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, from_zero=from_zero)
        tied = config.tie_word_embeddings
        self.lm_head = None if tied else Linear(shape[1], shape[0], False, build.std, None, rngs=build.rngs)


@dataclass(frozen=True)
class LanguageModel:
    """A decoder of one family.

    Weights are a dict with Hugging Face's names; those of the layers that stand at the same place of the period of
    layer kinds are stacked on a leading axis, over which one pass scans.
    """

    config: ModelConfig
    lora: LoraConfig | None = None
    """Low-rank adapters beside the weights."""
    members: int | None = None
    """Adapters are a population, stacked on a leading axis; rows come in as many blocks of equal size."""
    compute: Compute = "float32"
    """Precision of activations and products; weights are cast to it where they are used."""
    remat: Remat = "none"
    """What the backward pass computes anew. `layers`: all but each layer's input; `products`: all but products."""

    def __post_init__(self) -> None:
        if self.members is not None and (self.lora is None or self.members < 1):
            raise ValueError("members stand for stacked adapters: they need a LoraConfig, and at least one member")
        if self.lora is not None and self.lora.targets != ALL_LINEAR:
            self.lora.check(linear_layers(self.config))
        for name, value, known in (("compute", self.compute, Compute), ("remat", self.remat, Remat)):
            if value not in get_args(known):
                raise ValueError(f"{name} = {value!r}: must be one of {', '.join(get_args(known))}")

    def init(self, key: PRNGKeyArray) -> PyTree:
        """Fresh weights, normal with the configuration's `initializer_range`; norms are the identity.

        The same key gives the same weights with and without adapters. Members of a population begin with different
        lora_A; lora_B is zero, so that all of them compute what the weights alone do.
        """
        frame_key, *layer_keys, lora_key = jax.random.split(key, 2 + self.config.period)
        frame = _pure(self._frame(nnx.Rngs(frame_key)))
        std = self.config.initializer_range
        table = frame["embed_tokens"].pop("embedding")
        frame["embed_tokens"]["weight"] = table / jnp.std(table) * std
        make = functools.partial(_fresh_layers, self, layer_keys)
        if self.members is None:
            return frame | {"layers": make(lora_key)}
        axes = axes_of_members(jax.eval_shape(make, lora_key))
        return frame | {"layers": jax.vmap(make, out_axes=axes)(jax.random.split(lora_key, self.members))}

    def abstract(self) -> PyTree:
        """Shapes and types of the weights, without computing any."""
        return jax.eval_shape(self.init, jax.random.key(0))

    def hidden(self, params: PyTree, tokens: Int[Array, "B T"], lengths: Int[Array, " B"]) -> Float[Array, "B T d"]:
        """What the head is given after each of the first `lengths` tokens of every row; the rest is padding."""
        steps = jnp.arange(tokens.shape[1])[None]
        positions = jnp.broadcast_to(steps, tokens.shape)
        around = span(self.config, positions, steps < lengths[:, None])
        x, _ = self.through(params, self.embed(params, tokens), around)
        return self.normalised(params, x)

    def logits(self, params: PyTree, tokens: Int[Array, "B T"], lengths: Int[Array, " B"]) -> Float[Array, "B T V"]:
        """Logits of the next token after each token."""
        return self.predict(params, self.hidden(params, tokens, lengths))

    def log_probs(
        self,
        params: PyTree,
        tokens: Int[Array, "B T"],
        lengths: Int[Array, " B"],
        *,
        temperature: float = 1.0,
        keep_logits: bool = False,
    ) -> head.TokenStatistics:
        """Log-probability of each token given those before it, and the entropy of what it was drawn from, `[B, T - 1]`.

        Logits are made one row at a time, and anew in the backward pass unless `keep_logits`: at no time are there
        more than those of one row. Entries beyond a row's length are 0.
        """
        hidden = self.hidden(params, tokens, lengths)[:, :-1]
        found = head.statistics(hidden, self.head(params), tokens[:, 1:], temperature, keep_logits)
        valid = jnp.arange(1, tokens.shape[1])[None] < lengths[:, None]
        return jax.tree.map(lambda leaf: jnp.where(valid, leaf, 0.0), found)

    def embed(self, params: PyTree, tokens: Int[Array, "*b"]) -> Float[Array, "*b d"]:
        return params["embed_tokens"]["weight"].astype(self.compute)[tokens]

    def normalised(self, params: PyTree, x: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
        return _bind(_structure_of_norm(self), params["norm"])(x)

    def head(self, params: PyTree) -> Float[Array, "V d"]:
        return params["embed_tokens" if self.config.tie_word_embeddings else "lm_head"]["weight"]

    def predict(self, params: PyTree, hidden: Float[Array, "*b d"]) -> Float[Array, "*b V"]:
        return head.logits(hidden, self.head(params))

    def through(self, params: PyTree, x: Float[Array, "B T d"], around: Span, memory: PyTree = None):
        """All layers; `memory` has one entry per place in the period, stacked over periods."""
        return self.over_members(self._scan, params["layers"], x, around, memory, memory_axis=1)

    def over_members(self, layers, params, x, around: Span, memory, memory_axis: int = 0):
        """`layers(params, x, around, memory)`, for each member with its block of rows."""
        if self.members is None:
            return layers(params, x, around, memory)
        m, a = self.members, memory_axis
        if x.shape[0] % m:
            raise ValueError(f"{x.shape[0]} rows cannot be {m} blocks of equal size, one for each member")

        def blocks(leaf, axis=0):
            return leaf.reshape(*leaf.shape[:axis], m, leaf.shape[axis] // m, *leaf.shape[axis + 1 :])

        slot, rows = around.slot, around._replace(slot=None)
        outputs = jax.vmap(
            lambda p, x, rows, memory: layers(p, x, rows._replace(slot=slot), memory),
            in_axes=(axes_of_members(params), 0, 0, a),
            out_axes=(0, a),
        )(params, blocks(x), jax.tree.map(blocks, rows), jax.tree.map(lambda leaf: blocks(leaf, a), memory))
        x, memory = outputs
        together = lambda leaf, axis: leaf.reshape(*leaf.shape[:axis], -1, *leaf.shape[axis + 2 :])  # noqa: E731
        return together(x, 0), jax.tree.map(lambda leaf: together(leaf, a), memory)

    def layer(self, kind: LayerType, params: PyTree, x, around: Span, memory, fused: bool = False):
        """One layer."""
        return _bind(_structure_of_block(self, kind, fused), params)(x, around, memory)

    def _scan(self, params, x, around, memory):
        def period(x, here):
            params, memory = here
            found = []
            for i, kind in enumerate(self.config.kinds):
                x, remembered = self.layer(kind, params[str(i)], x, around, None if memory is None else memory[i])
                found.append(remembered)
            return x, None if memory is None else tuple(found)

        return jax.lax.scan(_rematerialised(period, self.remat), x, (params, memory))

    def _block(self, kind: LayerType, rngs: nnx.Rngs, fused: bool = False) -> nnx.Module:
        build = Build(self.config.initializer_range, self.lora, fused, rngs)
        return self.family.Block(self.config, build, kind)

    def _frame(self, rngs: nnx.Rngs) -> Frame:
        return Frame(self.config, Build(self.config.initializer_range, rngs=rngs), self.from_zero)

    @property
    def family(self) -> Any:
        return registry.load(FAMILIES, self.config.family)

    @property
    def from_zero(self) -> bool:
        """Norms store their weight less one."""
        return getattr(self.family, "NORMS_FROM_ZERO", False)


def _fresh_layers(model: LanguageModel, layer_keys: list[PRNGKeyArray], lora_key: PRNGKeyArray) -> PyTree:
    count = model.config.num_hidden_layers // model.config.period

    def block(kind, weights_key, lora_key):
        return _pure(model._block(kind, nnx.Rngs(params=weights_key, lora=lora_key)))

    layers = {}
    for i, (kind, layer_key) in enumerate(zip(model.config.kinds, layer_keys, strict=True)):
        lora_keys = jax.random.split(jax.random.fold_in(lora_key, i), count)
        weights_keys = jax.random.split(layer_key, count)
        layers[str(i)] = jax.vmap(functools.partial(block, kind))(weights_keys, lora_keys)
    return layers


def _rematerialised(function, remat: Remat):
    if remat == "none":
        return function
    policy = None if remat == "layers" else jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    return jax.checkpoint(function, policy=policy, prevent_cse=False)


def _pure(module: nnx.Module) -> PyTree:
    return nnx.to_pure_dict(nnx.state(module))


@functools.cache
def linear_layers(config: ModelConfig) -> tuple[str, ...]:
    """Names of the linear layers that can have an adapter, sorted."""
    model = LanguageModel(config, LoraConfig(targets=ALL_LINEAR))
    names = set()
    for kind in config.kinds:
        block = jax.eval_shape(lambda kind=kind: _pure(model._block(kind, nnx.Rngs(0))))
        paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(block) if is_adapter(path)]
        names |= {path[-3].key for path in paths}
    return tuple(sorted(names))


@functools.cache
def _structure_of_block(model: LanguageModel, kind: LayerType, fused: bool):
    return nnx.split(nnx.eval_shape(lambda: model._block(kind, nnx.Rngs(0), fused)))


@functools.cache
def _structure_of_norm(model: LanguageModel):
    config = model.config
    return nnx.split(
        nnx.eval_shape(lambda: RMSNorm(config.hidden_size, config.rms_norm_eps, from_zero=model.from_zero))
    )


def _bind(structure, params: PyTree):
    graph, state = structure
    state = jax.tree.map(lambda leaf: leaf, state)
    nnx.replace_by_pure_dict(state, params)
    return nnx.merge(graph, state)
