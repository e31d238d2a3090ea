"""What a language model is made of, read from and written as a Hugging Face config.json."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from jaxscope import registry
from jaxscope.agents.llm.rotary import RopeConfig

FAMILIES = "jaxscope.agents.llm.families"
LayerType = Literal["full_attention", "sliding_attention", "linear_attention"]
Activation = Literal["silu", "gelu", "gelu_pytorch_tanh", "relu"]


@dataclass(frozen=True)
class DeltaNetConfig:
    """Sizes of gated linear attention."""

    linear_conv_kernel_dim: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 32

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} = {value!r} must be a whole number, at least 1")
        if self.linear_num_value_heads % self.linear_num_key_heads:
            raise ValueError(
                f"linear_num_value_heads = {self.linear_num_value_heads} must be a multiple of "
                f"linear_num_key_heads = {self.linear_num_key_heads}"
            )


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and kinds of a decoder's layers; names are those of a Hugging Face config.json."""

    family: str
    """Its `model_type`, which is the name of a file under `agents/llm/families`."""
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    layer_types: tuple[LayerType, ...]
    """The kind of every layer, first to last."""
    ropes: tuple[tuple[LayerType, RopeConfig], ...]
    """How positions enter layers of each kind that has attention."""
    max_position_embeddings: int
    rms_norm_eps: float = 1e-6
    hidden_act: Activation = "silu"
    tie_word_embeddings: bool = False
    """The head is the transpose of the embedding."""
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: int | None = None
    """Tokens that a layer of sliding attention sees, itself among them."""
    initializer_range: float = 0.02
    """Standard deviation of fresh weights."""
    delta_net: DeltaNetConfig | None = None
    """Sizes of layers of linear attention, where there are any."""
    bos_token_id: int | None = None
    eos_token_id: tuple[int, ...] = ()
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        for broken, problem in self._rules():
            if broken:
                raise ValueError(f"{self.family} config: {problem}")

    def _rules(self) -> list[tuple[bool, str]]:
        sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
        sizes += ("head_dim", "max_position_embeddings")
        values = {name: getattr(self, name) for name in sizes}
        sliding, linear = "sliding_attention" in self.layer_types, "linear_attention" in self.layer_types
        unknown = sorted(set(self.layer_types) - set(get_args(LayerType)))
        return [
            *(
                (not isinstance(v, int) or v < 1, f"{n} = {v!r} must be a whole number, at least 1")
                for n, v in values.items()
            ),
            (not self.layer_types, "num_hidden_layers = 0 must be at least 1"),
            (
                bool(unknown),
                f"layer types {', '.join(unknown)} are unknown; known are {', '.join(get_args(LayerType))}",
            ),
            (
                bool(self.num_attention_heads % self.num_key_value_heads),
                f"num_attention_heads = {self.num_attention_heads} must be a multiple of "
                f"num_key_value_heads = {self.num_key_value_heads}",
            ),
            (self.head_dim % 2 == 1, f"head_dim = {self.head_dim} must be even"),
            (
                self.hidden_act not in get_args(Activation),
                f"hidden_act = {self.hidden_act!r} is not one of {', '.join(get_args(Activation))}",
            ),
            (sliding and (self.sliding_window or 0) < 1, f"sliding_window = {self.sliding_window} must be at least 1"),
            (linear and self.delta_net is None, "layers of linear attention need their sizes"),
        ]

    @property
    def num_hidden_layers(self) -> int:
        return len(self.layer_types)

    @property
    def period(self) -> int:
        """The fewest layers after which the kinds repeat: what one step of the scan over layers holds."""
        count = self.num_hidden_layers
        return next(
            p for p in range(1, count + 1) if count % p == 0 and self.layer_types == self.layer_types[:p] * (count // p)
        )

    @property
    def kinds(self) -> tuple[LayerType, ...]:
        """The layer types of one period."""
        return self.layer_types[: self.period]

    def rope(self, kind: LayerType) -> RopeConfig:
        return dict(self.ropes)[kind]


def from_hugging_face(raw: dict[str, Any]) -> ModelConfig:
    """The configuration that a config.json describes.

    Raises:
        ValueError: the architecture is not supported, a field is missing or impossible, or a field is set whose effect
            we do not know: it would be ignored.
    """
    raw = dict(raw)
    if "model_type" not in raw:
        raise ValueError("config.json has no model_type")
    name = str(raw["model_type"]).removesuffix("_text")
    family = registry.load(FAMILIES, name)
    # Models that also see or hear have their text's configuration within.
    fields = Fields(family.text_part(raw) if hasattr(family, "text_part") else raw, name)
    config = family.parse(fields)
    fields.finish()
    return config


def to_hugging_face(config: ModelConfig) -> dict[str, Any]:
    """A config.json from which transformers builds the same model."""
    return registry.load(FAMILIES, config.family).unparse(config)


#: Fields without an effect on what a loaded model computes: names, versions, what generation or training would do.
_NO_EFFECT = frozenset(
    [
        "architectures",
        "attention_dropout",
        "dtype",
        "torch_dtype",
        "transformers_version",
        "use_cache",
        "_name_or_path",
        "model_type",
        "tokenizer_class",
        "pretraining_tp",
        "transformers.js_config",
        "is_llama_config",
        "hidden_dropout",
        "output_attentions",
        "output_hidden_states",
        "return_dict",
        "chunk_size_feed_forward",
        "id2label",
        "label2id",
        "problem_type",
        "is_encoder_decoder",
        "_attn_implementation",
        "auto_map",
        "bos_token",
        "eos_token",
        "pad_token",
        "unsloth_fixed",
        "task_specific_params",
        "finetuning_task",
    ]
)
_MISSING = object()


class Fields:
    """A config.json while it is read: every field is taken once or known to have no effect."""

    def __init__(self, raw: dict[str, Any], family: str):
        self.raw, self.family = raw, family
        self.left = {name: value for name, value in raw.items() if name not in _NO_EFFECT}

    def take(self, name: str, default: Any = _MISSING) -> Any:
        """The value of a field; absent or null is `default`."""
        value = self.left.pop(name, None)
        if value is None and default is _MISSING:
            raise ValueError(f"config.json of a {self.family} model has no {name}")
        return default if value is None else value

    def number(self, name: str, default: Any = _MISSING) -> Any:
        value = self.take(name, default)
        if isinstance(value, bool) or not (value is None or isinstance(value, int | float)) or value != value:
            raise ValueError(f"config.json: {name} = {value!r} must be a number")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise ValueError(f"config.json: {name} = {value!r} must be true or false")
        return value

    def must_be(self, name: str, *allowed: Any) -> None:
        """A field that this code supports only at certain values."""
        value = self.left.pop(name, None)
        if value is not None and value not in allowed:
            raise ValueError(f"config.json: {name} = {value!r} is not supported for {self.family}")

    def ids(self, name: str) -> tuple[int, ...]:
        value = self.take(name, ())
        return (value,) if isinstance(value, int) else tuple(value)

    def rope(self, default_theta: float, kind: str | None = None, partial: float | None = None) -> RopeConfig:
        """The rope of layers of a kind: today's form is `rope_parameters`, the older `rope_theta` and `rope_scaling`.

        Args:
            partial: the share of a head's numbers that turn where none is given.
        """
        found = self.raw.get("rope_parameters") or {}
        by_kind = any(isinstance(value, dict) for value in found.values())
        found = dict((found.get(kind) or {}) if by_kind else found)
        older = dict(self.raw.get("rope_scaling") or {})
        if "type" in older:
            older.setdefault("rope_type", older.pop("type"))
        if kind != "sliding_attention":
            found = older | found
        found.setdefault("rope_theta", self.raw.get("rope_theta") or default_theta)
        found_partial = self.raw.get("partial_rotary_factor")
        partial = partial if found_partial is None else found_partial
        if partial is not None:
            found.setdefault("partial_rotary_factor", partial)
        # Sections of an image's axes: a text has one position for all of them.
        for name in ("type", "mrope_section", "mrope_interleaved"):
            found.pop(name, None)
        known = RopeConfig.__dataclass_fields__
        strange = sorted(set(found) - set(known))
        if strange:
            raise ValueError(f"config.json: rope parameters {', '.join(strange)} are not supported")
        return RopeConfig(**{name: value for name, value in found.items() if value is not None})

    def finish(self) -> None:
        for name in ("rope_parameters", "rope_theta", "rope_scaling", "partial_rotary_factor"):
            self.left.pop(name, None)
        strange = {name: value for name, value in self.left.items() if value is not None}
        if strange:
            listed = ", ".join(f"{name} = {value!r}" for name, value in sorted(strange.items()))
            raise ValueError(f"config.json of a {self.family} model sets what is not supported: {listed}")


def common(fields: Fields, **others: Any) -> dict[str, Any]:
    """The fields that every family has, read alike; `others` are added or stand in."""
    heads, width = fields.number("num_attention_heads"), fields.number("hidden_size")
    found = {
        "family": fields.family,
        "vocab_size": fields.number("vocab_size"),
        "hidden_size": width,
        "intermediate_size": fields.number("intermediate_size"),
        "num_attention_heads": heads,
        "num_key_value_heads": fields.number("num_key_value_heads", heads),
        "head_dim": fields.number("head_dim", width // heads),
        "max_position_embeddings": fields.number("max_position_embeddings"),
        "rms_norm_eps": fields.number("rms_norm_eps", 1e-6),
        "hidden_act": fields.take("hidden_act", "silu"),
        "initializer_range": fields.number("initializer_range", 0.02),
        "bos_token_id": fields.number("bos_token_id", None),
        "eos_token_id": fields.ids("eos_token_id"),
        "pad_token_id": fields.number("pad_token_id", None),
    }
    return found | others


def uncommon(config: ModelConfig, architecture: str, **others: Any) -> dict[str, Any]:
    """The reverse of `common`."""
    same = ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    same += ("max_position_embeddings", "rms_norm_eps", "hidden_act", "initializer_range", "tie_word_embeddings")
    same += ("num_hidden_layers", "bos_token_id", "pad_token_id")
    found = {name: getattr(config, name) for name in same}
    found["eos_token_id"] = list(config.eos_token_id) or None
    return {"architectures": [architecture], "model_type": config.family} | found | others


def flat_rope(config: ModelConfig) -> dict[str, Any]:
    """`rope_parameters` of a family that has one rope for all layers."""
    return config.ropes[0][1].to_hugging_face()


def sliding_layers(fields: Fields, layers: int) -> tuple[tuple[LayerType, ...], int | None]:
    """Qwen's rule: from layer `max_window_layers` on attention slides, where sliding is on at all."""
    window, sliding = fields.number("sliding_window", None), fields.flag("use_sliding_window")
    first = fields.number("max_window_layers", 28)
    named = fields.take("layer_types", None)
    if named is not None:
        return tuple(named), window if sliding else None
    on = sliding and window is not None
    kinds = tuple("sliding_attention" if on and i >= first else "full_attention" for i in range(layers))
    return kinds, window if on else None


def check_length(config: ModelConfig, length: int) -> None:
    """Refuse a context longer than the model's.

    Raises:
        ValueError: `length` tokens do not fit.
    """
    if not 0 < length <= config.max_position_embeddings or math.isnan(length):
        raise ValueError(f"a context of {length} tokens does not fit: the model has {config.max_position_embeddings}")
