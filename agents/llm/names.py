"""How the parameters of a model are called in Hugging Face's files.

Parameters are a nested dict with Hugging Face's own module names. Layers of one kind are stacked: where kinds repeat
with a period p, layer l of a file is entry l // p of the leaves under `layers/{l % p}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Within the parameters, the names of a leaf's dicts: `("layers", "0", "mlp", "up_proj", "weight")`.
Path = tuple[str, ...]

#: Modules that stand beside the model and not in it.
HEADS = ("lm_head",)


def leaves(params: Mapping[str, Any], above: Path = ()) -> dict[Path, Any]:
    """All leaves of nested dicts by their paths."""
    found = {}
    for key, value in params.items():
        path = (*above, key)
        found |= leaves(value, path) if isinstance(value, Mapping) else {path: value}
    return found


def nested(flat: Mapping[Path, Any]) -> dict[str, Any]:
    """Undo `leaves`."""
    params: dict[str, Any] = {}
    for path, value in flat.items():
        inner = params
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return params


def stacked(path: Path) -> bool:
    """Whether the leading axis of a leaf is one of layers."""
    return path[0] == "layers"


def names(path: Path, shape: tuple[int, ...], period: int, prefix: str = "model.") -> list[str]:
    """The names in a file of a leaf's tensors: one, or one for every layer that is stacked in it.

    Args:
        path: the leaf's path.
        shape: its shape, of all its layers where it has layers.
        period: after how many layers their kinds repeat.
        prefix: what names within the model begin with.
    """
    if path[0] in HEADS:
        return [".".join(path)]
    if not stacked(path):
        return [prefix + ".".join(path)]
    _, kind, *rest = path
    return [f"{prefix}layers.{period * i + int(kind)}.{'.'.join(rest)}" for i in range(shape[0])]
