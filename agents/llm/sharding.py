"""Where parameters, caches and tokens lie on a mesh of devices: one table of rules.

The axes of a mesh are `data` (rows of a batch), `fsdp` (rows too, and every large matrix along one dimension, gathered
where it is used) and `tensor` (heads and inner features). A step is written once, for arrays of any placement; XLA puts
in the communication.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxscope.agents.llm import cache as caches
from jaxscope.agents.llm.cache import Cache
from jaxscope.agents.llm.lora import is_adapter
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.types import PyTree

AXES = ("data", "fsdp", "tensor")
#: The axes that rows of a batch are divided over.
ROWS = ("data", "fsdp")

#: What parameters' names begin with; an optimiser may have dicts around them.
_ROOTS = ("embed_tokens", "layers", "norm", "lm_head")

Axis = str | tuple[str, ...] | None


class Rule(NamedTuple):
    """Where the parameters of some names lie.

    The names are a parameter's keys joined by dots, without the number after `layers`. The axes are those of its last
    dimensions; what stands before them, layers, is on every device.
    """

    names: str
    """A regular expression for whole names."""
    axes: tuple[Axis, ...] = ()
    heads: str | None = None
    """The field of the configuration with the number of heads that the dimension on `tensor` must keep whole."""


def _column(module: str, heads: str | None = None) -> tuple[Rule, ...]:
    """Outputs are divided: the layer's product needs no sum over `tensor`."""
    return (
        Rule(rf"{module}\.weight", ("tensor", "fsdp"), heads),
        Rule(rf"{module}\.bias", ("tensor",), heads),
        Rule(rf"{module}\.lora\.lora_A", (None, "fsdp")),
        Rule(rf"{module}\.lora\.lora_B", ("tensor", None), heads),
    )


def _row(module: str, heads: str | None = None) -> tuple[Rule, ...]:
    """Inputs are divided: they come from a layer whose outputs are."""
    return (
        Rule(rf"{module}\.weight", ("fsdp", "tensor"), heads),
        Rule(rf"{module}\.bias"),
        Rule(rf"{module}\.lora\.lora_A", (None, "tensor"), heads),
        Rule(rf"{module}\.lora\.lora_B", ("fsdp", None)),
    )


#: A family's file may have a table of its own, `SHARDING`. Exactly one rule applies to a name.
RULES: tuple[Rule, ...] = (
    # By width, not by vocabulary: a gather of rows from a divided vocabulary would move the whole table.
    Rule(r"embed_tokens\.weight", (None, "fsdp")),
    Rule(r"lm_head\.weight", ("tensor", "fsdp")),
    Rule(r"(layers\.)?(\w+\.)?\w*norm\.weight"),
    *_column(r"layers\.self_attn\.q_proj", "num_attention_heads"),
    *_column(r"layers\.self_attn\.[kv]_proj", "num_key_value_heads"),
    *_row(r"layers\.self_attn\.o_proj", "num_attention_heads"),
    *_column(r"layers\.mlp\.(gate|up)_proj"),
    *_row(r"layers\.mlp\.down_proj"),
    *_column(r"layers\.linear_attn\.in_proj(_\w+)?", "delta_net.linear_num_key_heads"),
    *_row(r"layers\.linear_attn\.out_proj", "delta_net.linear_num_value_heads"),
    Rule(r"layers\.linear_attn\.conv1d\.(weight|bias)"),
    Rule(r"layers\.linear_attn\.(A_log|dt_bias)"),
    # Of weights that are fused for decoding. Heads of queries are a multiple of those of keys.
    *_column(r"layers\.self_attn\.qkv", "num_key_value_heads"),
    *_column(r"layers\.mlp\.gate_up"),
)


class Undivided(NamedTuple):
    """A dimension that an axis of the mesh does not divide, and that therefore is whole on every device."""

    name: str
    dimension: int
    size: int
    axis: str
    parts: int
    unit: str = ""
    """What `size` counts, where it is not entries: heads."""

    def __str__(self) -> str:
        counted = f"{self.size} {self.unit}" if self.unit else str(self.size)
        return f"{self.name}: dimension {self.dimension} ({counted}) is not divided by {self.axis} = {self.parts}"


class Placement(NamedTuple):
    """Where the leaves of a pytree lie."""

    specs: PyTree
    """A PartitionSpec for every leaf."""
    undivided: tuple[Undivided, ...]

    def shardings(self, mesh: Mesh) -> PyTree:
        return jax.tree.map(
            lambda spec: NamedSharding(mesh, spec), self.specs, is_leaf=lambda leaf: isinstance(leaf, P)
        )

    def put(self, tree: PyTree, mesh: Mesh) -> PyTree:
        """The arrays of `tree`, each where its spec says."""
        return jax.device_put(tree, self.shardings(mesh))

    def hold(self, tree: PyTree, mesh: Mesh) -> PyTree:
        """`tree`, made by a compiled function, where the specs say; without this XLA chooses for itself."""
        return jax.lax.with_sharding_constraint(tree, self.shardings(mesh))

    def __str__(self) -> str:
        whole = [f"  {problem}" for problem in self.undivided]
        return "\n".join(["every dimension is divided"] if not whole else ["whole on every device:", *whole])


def mesh(data: int = 1, fsdp: int = 1, tensor: int = 1, devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh of `data * fsdp * tensor` devices, the first ones of this machine by default.

    Raises:
        ValueError: there are fewer devices.
    """
    sizes = (data, fsdp, tensor)
    if min(sizes) < 1:
        raise ValueError(f"mesh of {_product(sizes)}: every axis must have at least 1 device")
    known = list(jax.devices() if devices is None else devices)
    if math.prod(sizes) > len(known):
        raise ValueError(f"mesh of {_product(sizes)} = {math.prod(sizes)} devices: there are {len(known)}")
    kinds = (AxisType.Auto,) * len(AXES)
    return jax.make_mesh(sizes, AXES, axis_types=kinds, devices=known[: math.prod(sizes)])


def place(model: LanguageModel, tree: PyTree, sizes: Mapping[str, int], strict: bool = False) -> Placement:
    """Where parameters lie, and all that is shaped like them.

    Args:
        tree: arrays or their shapes: parameters, adapters alone, gradients, the state of an optimiser, or the weights
            of `fused.fuse`. Scalars, such as the count of steps, are on every device.
        sizes: devices on each axis: `mesh.shape`.
        strict: refuse a dimension that an axis does not divide, instead of leaving it whole and saying so.

    Raises:
        ValueError: a parameter's name matches no rule or several; or `strict`.
    """
    rules, problems = table(model), []

    def spec(path, leaf) -> P:
        if not leaf.shape:
            return P()
        name = name_of(path)
        rule = rule_for(name, rules)
        if len(leaf.shape) < len(rule.axes):
            raise ValueError(f"sharding: {name} of shape {leaf.shape} has fewer dimensions than its rule {rule.axes}")
        axes = list((None,) * (len(leaf.shape) - len(rule.axes)) + rule.axes)
        if model.members is not None and is_adapter(path):
            axes[0] = "data"
        heads = None if rule.heads is None else operator.attrgetter(rule.heads)(model.config)
        return P(*_divided(name, leaf.shape, axes, sizes, problems, heads))

    return _finish(jax.tree_util.tree_map_with_path(spec, tree), problems, strict)


def place_cache(
    model: LanguageModel, rows: int, slots: int, sizes: Mapping[str, int], strict: bool = False
) -> Placement:
    """Where a `Cache` of these rows and slots lies: rows over `data` and `fsdp`, heads over `tensor`."""
    cache: Cache = jax.eval_shape(functools.partial(caches.empty, model, rows, slots))
    problems = []

    def spec(path, leaf) -> P:
        name = "cache" + re.sub(r"\[\d+\]", "", jax.tree_util.keystr(path))
        axes: list[Axis] = [ROWS, "tensor"] + [None] * (len(leaf.shape) - 2)
        axes = axes if len(leaf.shape) > 2 else [ROWS, None][: len(leaf.shape)]
        return P(*_divided(name, leaf.shape, axes, sizes, problems))

    return _finish(jax.tree_util.tree_map_with_path(spec, cache), problems, strict)


def of_rows(mesh: Mesh) -> NamedSharding:
    """Tokens, lengths and whatever else has one entry a row."""
    return NamedSharding(mesh, P(ROWS))


def table(model: LanguageModel) -> tuple[Rule, ...]:
    """The rules of a model's family."""
    return getattr(model.family, "SHARDING", RULES)


def name_of(path: tuple[Any, ...]) -> str:
    """The name by which rules know a leaf.

    An optimiser's trees, and the list of layers of fused weights, have the same names as parameters. Fused adapters
    stand under the product that their layer is part of, and get the name that they have outside of it.
    """
    keys = [str(key.key) for key in path if isinstance(key, jax.tree_util.DictKey)]
    start = next((i for i, key in enumerate(keys) if key in _ROOTS), 0)
    name = re.sub(r"^layers\.\d+\.", "layers.", ".".join(keys[start:]))
    return re.sub(r"\.(qkv|gate_up|in_proj)\.lora\.(\w+)\.(lora_[AB])$", r".\2.lora.\3", name)


def rule_for(name: str, rules: tuple[Rule, ...]) -> Rule:
    found = [rule for rule in rules if re.fullmatch(rule.names, name)]
    if len(found) != 1:
        told = "no rule" if not found else f"several rules: {', '.join(rule.names for rule in found)}"
        raise ValueError(f"sharding: {name} matches {told}")
    return found[0]


def _divided(name, shape, axes: list[Axis], sizes: Mapping[str, int], problems: list[Undivided], heads=None):
    """`axes` without those that do not divide their dimension, which are added to `problems`."""
    kept = []
    for dimension, (size, axis) in enumerate(zip(shape, axes, strict=True)):
        names = (axis,) if isinstance(axis, str) else axis or ()
        parts = math.prod(sizes[one] for one in names)
        whole, unit = (size, "") if heads is None or names != ("tensor",) else (heads, "heads")
        if whole % parts:
            problems.append(Undivided(name, dimension, whole, " x ".join(names), parts, unit))
            axis = None
        kept.append(axis)
    return kept


def _finish(specs: PyTree, problems: list[Undivided], strict: bool) -> Placement:
    # Layers of the same name have the same problem.
    unique = tuple(dict.fromkeys(problems))
    if strict and unique:
        raise ValueError(f"sharding: {'; '.join(map(str, unique))}")
    return Placement(specs, unique)


def _product(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{axis} {size}" for axis, size in zip(AXES, sizes, strict=True))
