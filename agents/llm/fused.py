"""Weights arranged for decoding: one array per layer, projections of the same input in one matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxscope.agents.llm.lora import is_adapter
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.types import PyTree

#: Module: the name of the fused product and its parts, in order.
GROUPS = {
    "self_attn": ("qkv", ("q_proj", "k_proj", "v_proj")),
    "linear_attn": ("in_proj", ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a")),
    "mlp": ("gate_up", ("gate_proj", "up_proj")),
}


def fuse(model: LanguageModel, params: PyTree) -> PyTree:
    """The weights for `generate`: a copy of those of the layers. It belongs after each update of the weights."""
    period = model.config.period
    layers = []
    for i in range(model.config.num_hidden_layers):
        at = i // period
        mine = jax.tree_util.tree_map_with_path(
            # Adapters of a population have the member axis before that of the layers.
            lambda path, leaf, at=at: leaf[:, at] if model.members is not None and is_adapter(path) else leaf[at],
            params["layers"][str(i % period)],
        )
        layers.append({name: _fused(name, part) for name, part in mine.items()})
    return {name: part for name, part in params.items() if name != "layers"} | {"layers": layers}


def _fused(name: str, module: PyTree) -> PyTree:
    if name not in GROUPS:
        return module
    group, parts = GROUPS[name]
    rest = {key: value for key, value in module.items() if key not in parts}
    fused = {"weight": jnp.concatenate([module[part]["weight"] for part in parts])}
    if "bias" in module[parts[0]]:
        fused["bias"] = jnp.concatenate([module[part]["bias"] for part in parts])
    lora = {part: module[part]["lora"] for part in parts if "lora" in module[part]}
    return rest | {group: fused | ({"lora": lora} if lora else {})}
