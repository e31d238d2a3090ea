"""A GGUF file seen as a Hugging Face model: its names, its order of rows, its configuration."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int

from jaxscope.agents.llm.gguf import GgufFile
from jaxscope.agents.llm.tensors import Index

#: The architectures that are read; GGUF and Hugging Face call them the same.
ARCHITECTURES = ("llama", "qwen2", "qwen3")

OUTER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

#: Factors by which the rotary frequencies of a model are divided: stored as a tensor here, as settings by Hugging Face.
ROTARY_FACTORS = "rope_freqs.weight"

#: Settings that change what a model computes and that none of the architectures has with Hugging Face.
FOREIGN = ("expert_count", "attention.sliding_window", "rope.scaling.attn_factor", "logit_scale")


class GgufWeights:
    """A `TensorSource` with Hugging Face's names, and the configuration that goes with it.

    llama.cpp keeps the rows of query and key projections of `llama` in the order that rotates neighbouring entries of a
    head; Hugging Face's rotates the first half against the second. Rows are read in the latter order.

    Attributes:
        file: the file as it is, with its metadata.
        config: what Hugging Face's config.json would say.

    Raises:
        ValueError: as `GgufFile`; or the model is of an architecture, or has settings, that are not read.
    """

    def __init__(self, path: str | Path) -> None:
        self.file = GgufFile(path)
        self.config = hugging_face_config(self.file)
        self._own = {hugging_face_name(name): name for name in self.file.names() if name != ROTARY_FACTORS}
        self._heads = {}
        if self.config["model_type"] == "llama":
            self._heads = {
                "q_proj": self.config["num_attention_heads"],
                "k_proj": self.config["num_key_value_heads"],
            }

    def __str__(self) -> str:
        return str(self.file)

    def names(self) -> list[str]:
        return list(self._own)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.file.shape(self._own[name])

    def dtype(self, name: str) -> np.dtype:
        return self.file.dtype(self._own[name])

    def read(self, name: str, index: Index = ()) -> np.ndarray:
        heads = self._heads.get(name.split(".")[-2])
        if heads is None:
            return self.file.read(self._own[name], index)
        rows, *others = index or (slice(None),)
        return self.file.read(self._own[name], (halves_of_pairs(self.shape(name)[0], heads)[rows], *others))

    def close(self) -> None:
        self.file.close()


def halves_of_pairs(rows: int, heads: int) -> Int[np.ndarray, " rows"]:
    """Where in a file of paired rows the rows are that stand in two halves of a head."""
    return np.arange(rows).reshape(heads, -1, 2).swapaxes(1, 2).reshape(-1)  # [heads, pair, 2] -> [heads, 2, pair]


def hugging_face_name(name: str) -> str:
    """Hugging Face's name of a GGUF tensor; a name that has none is kept.

    `blk.3.attn_q.weight` gives `model.layers.3.self_attn.q_proj.weight`.
    """
    block = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if block and block[2] in INNER:
        return f"model.layers.{block[1]}.{INNER[block[2]]}.{block[3]}"
    module, _, kind = name.rpartition(".")
    return f"{OUTER[module]}.{kind}" if module in OUTER else name


def hugging_face_config(file: GgufFile) -> dict[str, Any]:
    """The configuration of a model of one of `ARCHITECTURES`, from the metadata and the table of tensors.

    Raises:
        ValueError: an unknown architecture, a setting that is missing, or one that cannot be kept.
    """
    kind = file.metadata.get("general.architecture")
    if kind not in ARCHITECTURES:
        raise ValueError(f"{file}: is of the architecture {kind!r}, where read are {', '.join(ARCHITECTURES)}")
    own = {key.removeprefix(f"{kind}."): value for key, value in file.metadata.items() if key.startswith(f"{kind}.")}
    needed = ("block_count", "embedding_length", "feed_forward_length", "context_length", "attention.head_count")
    needed += ("attention.layer_norm_rms_epsilon",)
    for key in needed:
        if not isinstance(own.get(key), int | float):
            raise ValueError(f"{file}: {kind}.{key} must be one number, not {own.get(key)!r}")
    for key in FOREIGN:
        if own.get(key):
            raise ValueError(f"{file}: has {kind}.{key} = {own[key]}, which is not read")
    heads = own["attention.head_count"]
    head_dim = own.get("attention.key_length", own["embedding_length"] // heads)
    for key in ("attention.value_length", "rope.dimension_count"):
        if own.get(key, head_dim) != head_dim:
            raise ValueError(
                f"{file}: has {kind}.{key} = {own[key]}, where only the size of a head, {head_dim}, is read"
            )
    config: dict[str, Any] = {
        "model_type": kind,
        "architectures": [{"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind] + "ForCausalLM"],
        "vocab_size": file.shape("token_embd.weight")[0] if "token_embd.weight" in file.tensors else own["vocab_size"],
        "hidden_size": own["embedding_length"],
        "intermediate_size": own["feed_forward_length"],
        "num_hidden_layers": own["block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": own.get("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": own["context_length"],
        "rms_norm_eps": _shortest(own["attention.layer_norm_rms_epsilon"]),
        "rope_theta": _shortest(own.get("rope.freq_base", 10000.0)),
        "rope_scaling": _rope_scaling(file, own, head_dim),
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    if kind != "qwen2":  # whose query, key and value always have a bias
        config["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
    if kind == "llama":
        config["mlp_bias"] = "blk.0.ffn_up.bias" in file.tensors
    for name, key in {"bos": "bos", "eos": "eos", "pad": "padding"}.items():
        if f"tokenizer.ggml.{key}_token_id" in file.metadata:
            config[f"{name}_token_id"] = file.metadata[f"tokenizer.ggml.{key}_token_id"]
    return config


def _shortest(number: float) -> float:
    """The shortest decimal of the float32 that is stored: 1e-05 for 9.999999747378752e-06."""
    return float(str(np.float32(number)))


def _rope_scaling(file: GgufFile, own: dict[str, Any], head_dim: int) -> dict[str, Any] | None:
    """Hugging Face's settings of scaled rotary frequencies; None where they are as trained."""
    kind = own.get("rope.scaling.type", "none")
    if ROTARY_FACTORS in file.tensors:
        return _llama3_scaling(file, own, head_dim)
    if kind == "none":
        return None
    if kind not in ("linear", "yarn"):
        raise ValueError(f"{file}: scales rotary frequencies by {kind!r}, where read are linear, yarn and llama3")
    scaling = {"rope_type": kind, "factor": _shortest(own.get("rope.scaling.factor", 1.0))}
    if "rope.scaling.original_context_length" in own:
        scaling["original_max_position_embeddings"] = own["rope.scaling.original_context_length"]
    return scaling


def _llama3_scaling(file: GgufFile, own: dict[str, Any], head_dim: int) -> dict[str, Any]:
    """The settings of Llama 3.1 and later that give the stored factors.

    The factors alone do not say them, but all those models have the same but for the largest factor.
    """
    factors = file.read(ROTARY_FACTORS)
    scaling = {
        "rope_type": "llama3",
        "factor": _shortest(float(factors.max())),
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    expected = llama3_factors(own.get("rope.freq_base", 10000.0), head_dim, scaling)
    if factors.shape != expected.shape or not np.allclose(factors, expected, rtol=1e-4):
        raise ValueError(f"{file}: has rotary factors ({ROTARY_FACTORS}) other than those of Llama 3.1 to 3.3")
    return scaling


def llama3_factors(theta: float, head_dim: int, scaling: dict[str, Any]) -> Float32[np.ndarray, " head_dim/2"]:
    """What each rotary frequency is divided by: 1 for short waves, `factor` for long ones, smooth between.

    Source: the Llama 3.1 model, as configured with Hugging Face under `rope_type` llama3.
    """
    low, high, original = (
        scaling[k] for k in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    )
    frequencies = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    turns = original * frequencies / (2 * math.pi)  # that a wave makes within the original context
    share = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - share) / scaling["factor"] + share)).astype(np.float32)
