"""Low-rank adapters as a pytree of their own: apart from the weights, stacked, gathered, and worked into them.

Weights and adapters have the same nested names, `{"layers": {"0": {"self_attn": {"q_proj": {"weight": ..., "lora":
{"lora_A": ..., "lora_B": ...}}}}}}`. A population has a member axis before that of the layers:
lora_A `[M, L/p, rank, in]`, lora_B `[M, L/p, out, rank]`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxscope.types import PyTree

LEAVES = ("lora_A", "lora_B")


def is_adapter(path: tuple[Any, ...]) -> bool:
    return bool(path) and getattr(path[-1], "key", None) in LEAVES


def axes_of_members(params: PyTree) -> PyTree:
    """0 for the leaves of adapters, None for all others: which of them have a member axis."""
    return jax.tree_util.tree_map_with_path(lambda path, _: 0 if is_adapter(path) else None, params)


def split(params: PyTree) -> tuple[PyTree, PyTree]:
    """(the weights, the adapters): two trees of the same names, each without what is in the other."""
    return _of_kind(params, False), _of_kind(params, True)


def join(base: PyTree, adapters: PyTree) -> PyTree:
    """The reverse of `split`.

    Raises:
        ValueError: both trees have a leaf of the same name.
    """
    if not (isinstance(base, dict) and isinstance(adapters, dict)):
        raise ValueError("weights and adapters have a leaf in common: join what split has taken apart")
    both = base.keys() & adapters.keys()
    return base | adapters | {name: join(base[name], adapters[name]) for name in both}


def gather(adapters: PyTree, members: Int[Array, "*n"] | int) -> PyTree:
    """The adapters of the members at these indices: one for each row, or for each block of rows; or of one member."""
    return jax.tree.map(lambda leaf: leaf[members], adapters)


def merge(params: PyTree, scale: float) -> PyTree:
    """Weights that compute the same without adapters, `W + scale * B A`, in the weights' own precision.

    One member of a population is merged by `merge(join(base, gather(adapters, member)), scale)`.

    Args:
        scale: `LoraConfig.scale`.

    Raises:
        ValueError: the adapters are a population, or the weights those of `fused.fuse`.
    """
    if not isinstance(params, dict):
        return params
    if "lora" not in params:
        return {name: merge(value, scale) for name, value in params.items()}
    weight, lora = params["weight"], params["lora"]
    if set(lora) != set(LEAVES):
        raise ValueError("weights of fused.fuse cannot be merged: merge first, then fuse")
    if lora["lora_A"].ndim != weight.ndim:
        raise ValueError("adapters of a population cannot be merged: gather one member first")
    # In full precision on every device: what is merged stays.
    product = jnp.matmul(lora["lora_B"], lora["lora_A"], precision="highest").astype(jnp.float32)
    merged = (weight.astype(jnp.float32) + scale * product).astype(weight.dtype)
    return {name: leaf for name, leaf in params.items() if name != "lora"} | {"weight": merged}


def _of_kind(tree: PyTree, adapters: bool) -> PyTree:
    """What remains of nested dicts when the other kind of leaf is taken away; dicts left empty go too."""
    kept = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            value = _of_kind(value, adapters)
            if value:
                kept[name] = value
        elif (name in LEAVES) == adapters:
            kept[name] = value
    return kept
