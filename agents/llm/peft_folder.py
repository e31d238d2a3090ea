"""Adapters as a folder that the PEFT library writes and reads: adapter_config.json, adapter_model.safetensors.

One adapter has two matrices for each linear layer that it changes, under the name
`base_model.model.model.layers.{layer}.{module}.lora_{A or B}.weight`.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from jaxscope.agents.llm.config import ModelConfig
from jaxscope.agents.llm.linear import LoraConfig
from jaxscope.agents.llm.lora import is_adapter, join
from jaxscope.agents.llm.model import LanguageModel, linear_layers
from jaxscope.types import PyTree

CONFIG = "adapter_config.json"
TENSORS = "adapter_model.safetensors"
_NAME = re.compile(r"base_model\.model\.(?:model\.)?(?:language_model\.)?layers\.(\d+)\.(.+)\.(lora_[AB])\.weight")

#: Fields that say where an adapter comes from or how it was trained, not what it computes.
_NO_EFFECT = frozenset(
    {
        "auto_mapping",
        "peft_version",
        "base_model_name_or_path",
        "revision",
        "inference_mode",
        "lora_dropout",
        "init_lora_weights",
        "loftq_config",
        "eva_config",
        "corda_config",
        "lora_ga_config",
        "megatron_core",
        "qalora_group_size",
        "runtime_config",
        "exclude_modules",
        "ensure_weight_tying",
    }
)
#: Fields that are read, here or from the tensors' names.
_READ = frozenset({"peft_type", "task_type", "r", "lora_alpha", "use_rslora", "bias", "target_modules"})


def write(folder: str | Path, model: LanguageModel, adapters: PyTree, base_model: str = "") -> Path:
    """Write one adapter as `folder`, made where it is not there yet.

    Args:
        adapters: of `lora.split`; a member of a population by `lora.gather(adapters, member)`.
        base_model: name or path of the model that the adapter belongs to.

    Raises:
        ValueError: the adapters are not those of one member of `model`.
    """
    if model.lora is None:
        raise ValueError("this model has no adapters to write")
    expected = _shapes(model.config, model.lora)
    found = _flat(adapters)
    if {path: leaf.shape for path, leaf in found.items()} != expected:
        stacked = any(leaf.ndim == 4 for leaf in found.values())
        hint = ": gather one member of the population" if stacked else ""
        raise ValueError(f"these are not the adapters of one model{hint}")
    tensors = {}
    for (_, place, *module, leaf_name), leaf in found.items():
        values = np.asarray(leaf, np.float32)
        for i in range(len(values)):
            layer = int(place) + i * model.config.period
            name = f"base_model.model.model.layers.{layer}.{'.'.join(module[:-1])}.{leaf_name}.weight"
            tensors[name] = np.ascontiguousarray(values[i])
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
    text = json.dumps(_config(model.lora, expected, base_model), indent=2, sort_keys=True)
    (folder / CONFIG).write_text(text + "\n")
    return folder


def read(folder: str | Path, config: ModelConfig) -> tuple[LoraConfig, PyTree]:
    """The adapter in `folder`: what `LanguageModel(config, lora)` needs, and what `lora.join` adds to its weights.

    Dropout was for training, it is not kept.

    Args:
        config: of the model that the adapter belongs to.

    Raises:
        ValueError: a file is missing or damaged, the adapter does not fit the model, or it has what is not supported:
            ranks or scales that differ between layers, DoRA, biases, whole modules, adapters in only some layers.
    """
    folder = Path(folder)
    for name in (CONFIG, TENSORS):
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: has no {name}")
    raw = _parsed(folder / CONFIG)
    try:
        tensors = load_file(folder / TENSORS)
    except (SafetensorError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / TENSORS}: cannot be read ({error})") from error
    tensors = {_place(name, config): value for name, value in tensors.items()}
    targets = tuple(sorted({path[-3] for path, _ in tensors}))
    if not targets:
        raise ValueError(f"{folder / TENSORS}: has no tensors")
    lora = LoraConfig(int(raw["r"]), _alpha(raw), targets)
    lora.check(linear_layers(config))
    expected = _shapes(config, lora)
    _check_shapes(tensors, expected)
    adapters = {}
    for path, shape in expected.items():
        stacked = jnp.asarray(np.stack([np.asarray(tensors[path, i], np.float32) for i in range(shape[0])]))
        for name in reversed(path):
            stacked = {name: stacked}
        adapters = join(adapters, stacked)
    return lora, adapters


def _config(lora: LoraConfig, expected: dict[tuple[str, ...], tuple[int, ...]], base_model: str) -> dict[str, Any]:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "inference_mode": True,
        "r": lora.rank,
        "lora_alpha": int(lora.alpha) if lora.alpha == int(lora.alpha) else lora.alpha,
        "lora_dropout": 0.0,
        "target_modules": sorted({path[-3] for path in expected}),
        "bias": "none",
        "fan_in_fan_out": False,
        "use_rslora": False,
        "use_dora": False,
        "init_lora_weights": True,
        "modules_to_save": None,
        "layers_to_transform": None,
        "layers_pattern": None,
        "rank_pattern": {},
        "alpha_pattern": {},
    }


def _parsed(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: is no JSON ({error})") from error
    if raw.get("peft_type") != "LORA":
        raise ValueError(f"{path}: peft_type = {raw.get('peft_type')!r}: must be 'LORA'")
    if raw.get("bias", "none") != "none":
        raise ValueError(f"{path}: bias = {raw['bias']!r} is not supported: must be 'none'")
    for name in ("r", "lora_alpha"):
        if isinstance(raw.get(name), bool) or not isinstance(raw.get(name), int | float) or not raw[name] > 0:
            raise ValueError(f"{path}: {name} = {raw.get(name)!r}: must be a positive number")
    strange = {name: value for name, value in raw.items() if name not in _NO_EFFECT | _READ and value}
    if strange:
        listed = ", ".join(f"{name} = {value!r}" for name, value in sorted(strange.items()))
        raise ValueError(f"{path}: sets what is not supported: {listed}")
    return raw


def _alpha(raw: dict[str, Any]) -> float:
    """Rank-stabilised adapters are scaled by alpha / sqrt(rank); ours by alpha / rank."""
    return float(raw["lora_alpha"]) * (math.sqrt(raw["r"]) if raw.get("use_rslora") else 1.0)


def _place(name: str, config: ModelConfig) -> tuple[tuple[str, ...], int]:
    """The path of the leaf that a tensor belongs to, and the tensor's place in it."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{TENSORS} has {name}, which is no low-rank matrix of a layer")
    layer, module, leaf = int(match[1]), match[2].split("."), match[3]
    return ("layers", str(layer % config.period), *module, "lora", leaf), layer // config.period


def _check_shapes(tensors: dict[tuple[tuple[str, ...], int], np.ndarray], expected) -> None:
    wanted = {(path, i): shape[1:] for path, shape in expected.items() for i in range(shape[0])}
    missing, strange = sorted(wanted.keys() - tensors.keys()), sorted(tensors.keys() - wanted.keys())
    if missing:
        raise ValueError(f"{TENSORS} lacks {len(missing)} tensors, such as {_told(missing[0])}")
    if strange:
        raise ValueError(f"{TENSORS} has {len(strange)} tensors that the model has not, such as {_told(strange[0])}")
    for place, shape in wanted.items():
        if tensors[place].shape != shape:
            raise ValueError(
                f"{TENSORS}: {_told(place)} has shape {tensors[place].shape}, where {shape} fits the model"
            )


def _told(place: tuple[tuple[str, ...], int]) -> str:
    path, i = place
    return f"{'.'.join(path)} [{i}]"


def _shapes(config: ModelConfig, lora: LoraConfig) -> dict[tuple[str, ...], tuple[int, ...]]:
    abstract = LanguageModel(config, lora).abstract()
    return {path: leaf.shape for path, leaf in _flat(abstract).items()}


def _flat(tree: PyTree) -> dict[tuple[str, ...], Any]:
    """The leaves of adapters by the names that lead to them."""
    found = jax.tree_util.tree_leaves_with_path(tree)
    return {tuple(key.key for key in path): leaf for path, leaf in found if is_adapter(path)}
