"""Low-rank adapters as a pytree of their own: apart from the weights, stacked, gathered, and worked into them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxscope.types import PyTree

LEAVES = ("lora_A", "lora_B")


def is_adapter(path: tuple[Any, ...]) -> bool:
    return getattr(path[-1], "key", None) in LEAVES


def axes_of_members(params: PyTree) -> PyTree:
    """0 for the leaves of adapters, None for all others: which of them have a member axis."""
    return jax.tree_util.tree_map_with_path(lambda path, _: 0 if is_adapter(path) else None, params)


def split(params: PyTree) -> tuple[PyTree, PyTree]:
    """(the weights, the adapters), as trees of the same form with None where the leaf is in the other."""
    base = jax.tree_util.tree_map_with_path(lambda path, leaf: None if is_adapter(path) else leaf, params)
    adapters = jax.tree_util.tree_map_with_path(lambda path, leaf: leaf if is_adapter(path) else None, params)
    return base, adapters


def join(base: PyTree, adapters: PyTree) -> PyTree:
    """The reverse of `split`."""
    return jax.tree.map(lambda a, b: b if a is None else a, base, adapters, is_leaf=lambda leaf: leaf is None)


def gather(adapters: PyTree, members: Int[Array, " R"]) -> PyTree:
    """The adapters of the members at these indices: one for each row, or for each block of rows."""
    return jax.tree.map(lambda leaf: leaf[members], adapters)


def merge(params: PyTree, scale: float) -> PyTree:
    """Weights that compute the same without adapters: `W + scale * B A`."""
    if not isinstance(params, dict):
        return params
    if "lora" in params and "weight" in params:
        a, b = params["lora"]["lora_A"], params["lora"]["lora_B"]
        rest = {name: leaf for name, leaf in params.items() if name != "lora"}
        return rest | {"weight": params["weight"] + scale * jnp.matmul(b, a)}
    return {name: merge(value, scale) for name, value in params.items()}
