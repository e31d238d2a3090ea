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
        sizes += ("head_dim", "max_position_embeddings", *(() if self.sliding_window is None else ("sliding_window",)))
        values = {name: getattr(self, name) for name in sizes}
        wrong = [(not _whole(v) or v < 1, f"{n} = {v!r} must be a whole number, at least 1") for n, v in values.items()]
        # The rules after these divide by sizes.
        return wrong if any(broken for broken, _ in wrong) else [*self._layer_rules(), *self._other_rules()]

    def _layer_rules(self) -> list[tuple[bool, str]]:
        kinds = set(self.layer_types)
        unknown = sorted(repr(kind) for kind in kinds - set(get_args(LayerType)))
        unturned = sorted(kinds - {kind for kind, _ in self.ropes} - {"linear_attention"})
        return [
            (not self.layer_types, "num_hidden_layers must be at least 1"),
            (
                bool(unknown),
                f"layer types {', '.join(unknown)} are unknown; known are {', '.join(get_args(LayerType))}",
            ),
            ("sliding_attention" in kinds and self.sliding_window is None, "sliding layers need a sliding_window"),
            ("linear_attention" in kinds and self.delta_net is None, "layers of linear attention need their sizes"),
            (bool(unturned), f"layers of {', '.join(unturned)} need a rope"),
        ]

    def _other_rules(self) -> list[tuple[bool, str]]:
        turning = [int(self.head_dim * rope.partial_rotary_factor) for _, rope in self.ropes]
        return [
            (
                bool(self.num_attention_heads % self.num_key_value_heads),
                f"num_attention_heads = {self.num_attention_heads} must be a multiple of "
                f"num_key_value_heads = {self.num_key_value_heads}",
            ),
            (self.head_dim % 2 == 1, f"head_dim = {self.head_dim} must be even"),
            (
                any(size < 2 or size % 2 for size in turning),
                f"head_dim = {self.head_dim}: the part that turns, {turning}, must be even, at least 2",
            ),
            (
                self.hidden_act not in get_args(Activation),
                f"hidden_act = {self.hidden_act!r} is not one of {', '.join(get_args(Activation))}",
            ),
            (not self.rms_norm_eps > 0, f"rms_norm_eps = {self.rms_norm_eps} must be positive"),
            (not self.initializer_range > 0, f"initializer_range = {self.initializer_range} must be positive"),
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
    """A config.json from which transformers builds the same model.

    Raises:
        ValueError: a config.json of the family cannot say what `config` does.
    """
    raw = registry.load(FAMILIES, config.family).unparse(config)
    read = from_hugging_face(raw)
    lost = [name for name, value in vars(config).items() if getattr(read, name) != value]
    if lost:
        raise ValueError(f"a config.json of a {config.family} model cannot hold this {', '.join(lost)}")
    return raw


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
        if value is not None and not _number(value):
            raise ValueError(f"config.json: {name} = {value!r} must be a number")
        return value

    def whole(self, name: str, default: Any = _MISSING) -> Any:
        value = self.take(name, default)
        if value is not None and not _whole(value):
            raise ValueError(f"config.json: {name} = {value!r} must be a whole number")
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
        value = self.take(name, [])
        ids = value if isinstance(value, list | tuple) else [value]
        if not all(_whole(i) for i in ids):
            raise ValueError(f"config.json: {name} = {value!r} must be a token's number, or a list of such")
        return tuple(ids)

    def layer_types(self, count: int, default: list[LayerType]) -> tuple[LayerType, ...]:
        """The kinds of `count` layers."""
        named = self.take("layer_types", default)
        if not isinstance(named, list | tuple) or len(named) != count or not all(isinstance(k, str) for k in named):
            raise ValueError(f"config.json: layer_types = {named!r} must list the num_hidden_layers = {count} layers")
        return tuple(named)

    def depth(self) -> int:
        """Number of layers."""
        count = self.whole("num_hidden_layers")
        if count < 1:
            raise ValueError(f"config.json: num_hidden_layers = {count} must be at least 1")
        return count

    @staticmethod
    def dictionary(within: dict[str, Any], name: str) -> dict[str, Any]:
        value = within.get(name)
        if value is not None and not isinstance(value, dict):
            raise ValueError(f"config.json: {name} = {value!r} must be a dictionary")
        return dict(value or {})

    def rope(self, default_theta: float, kind: str | None = None, partial: float | None = None) -> RopeConfig:
        """The rope of layers of a kind: today's form is `rope_parameters`, the older `rope_theta` and `rope_scaling`.

        Args:
            partial: the share of a head's numbers that turn where none is given.
        """
        found = self.dictionary(self.raw, "rope_parameters")
        if kind is not None and any(isinstance(value, dict) for value in found.values()):
            strange = sorted(set(found) - set(get_args(LayerType)))
            if strange:
                raise ValueError(f"config.json: rope_parameters of {', '.join(strange)}: no such kind of layer")
            found = self.dictionary(found, kind)
        older = self.dictionary(self.raw, "rope_scaling")
        if kind != "sliding_attention":
            found = older | found
        found.setdefault("rope_type", found.pop("type", None))
        for name, default in (("rope_theta", default_theta), ("partial_rotary_factor", partial)):
            outside = self.raw.get(name)
            found.setdefault(name, default if outside is None else outside)
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


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def common(fields: Fields, **others: Any) -> dict[str, Any]:
    """The fields that every family has, read alike; `others` are added or stand in."""
    heads, width = fields.whole("num_attention_heads"), fields.whole("hidden_size")
    if heads < 1:
        raise ValueError(f"config.json: num_attention_heads = {heads} must be at least 1")
    found = {
        "family": fields.family,
        "vocab_size": fields.whole("vocab_size"),
        "hidden_size": width,
        "intermediate_size": fields.whole("intermediate_size"),
        "num_attention_heads": heads,
        "num_key_value_heads": fields.whole("num_key_value_heads", heads),
        "head_dim": fields.whole("head_dim", width // heads),
        "max_position_embeddings": fields.whole("max_position_embeddings"),
        "rms_norm_eps": fields.number("rms_norm_eps", 1e-6),
        "hidden_act": fields.take("hidden_act", "silu"),
        "initializer_range": fields.number("initializer_range", 0.02),
        "bos_token_id": fields.whole("bos_token_id", None),
        "eos_token_id": fields.ids("eos_token_id"),
        "pad_token_id": fields.whole("pad_token_id", None),
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
    window, sliding = fields.whole("sliding_window", None), fields.flag("use_sliding_window")
    first = fields.whole("max_window_layers", 28)
    on = sliding and window is not None
    by_rule: list[LayerType] = ["sliding_attention" if on and i >= first else "full_attention" for i in range(layers)]
    return fields.layer_types(layers, by_rule), window if on else None


def check_length(config: ModelConfig, length: int) -> None:
    """Refuse a context longer than the model's.

    Raises:
        ValueError: `length` tokens do not fit.
    """
    if not 0 < length <= config.max_position_embeddings:
        raise ValueError(f"a context of {length} tokens does not fit: the model has {config.max_position_embeddings}")
