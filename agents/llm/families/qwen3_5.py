"""Qwen3.5 (Qwen team, 2026): three layers of gated linear attention to a layer of gated full attention.

The text part of a model that may also see; what sees is left out.
"""

from __future__ import annotations

from typing import Any

from flax import nnx

from jaxscope.agents.llm.attention import Attention
from jaxscope.agents.llm.config import DeltaNetConfig, Fields, LayerType, ModelConfig, common, flat_rope, uncommon
from jaxscope.agents.llm.delta_net import DeltaNet
from jaxscope.agents.llm.delta_net import empty_memory as empty_memory
from jaxscope.agents.llm.linear import Build
from jaxscope.agents.llm.mlp import MLP
from jaxscope.agents.llm.norm import RMSNorm

NORMS_FROM_ZERO = True

#: Beside the text's configuration: of the part that sees, and the ids of its tokens.
_SIGHT = ("vision_config", "image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")


def text_part(raw: dict[str, Any]) -> dict[str, Any]:
    """The text's configuration within that of a model that sees; one of a text model is given back."""
    if "text_config" not in raw:
        return raw
    around = {name: value for name, value in raw.items() if name not in (*_SIGHT, "text_config", "language_model_only")}
    tied = {name: value for name, value in around.items() if name == "tie_word_embeddings"}
    return around | raw["text_config"] | tied


def parse(fields: Fields) -> ModelConfig:
    layers, interval = fields.number("num_hidden_layers"), fields.number("full_attention_interval", 4)
    if not (isinstance(interval, int) and interval > 0):
        raise ValueError(f"config.json: full_attention_interval = {interval!r} must be a whole number, at least 1")
    kinds = ["linear_attention" if (i + 1) % interval else "full_attention" for i in range(layers)]
    fields.must_be("attn_output_gate", True)
    fields.must_be("output_gate_type", "swish", "silu")
    fields.must_be("mamba_ssm_dtype", "float32")
    fields.must_be("mlp_only_layers", [])
    # Layers that guess further tokens: the files' `mtp` tensors, which are not part of the model.
    for name in ("mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "unsloth_fixed_mtp"):
        fields.take(name, None)
    heads = {"head_dim": fields.number("head_dim", 256), "num_key_value_heads": fields.number("num_key_value_heads", 4)}
    return ModelConfig(
        **common(fields, **heads),
        layer_types=tuple(fields.take("layer_types", kinds)),
        ropes=(("full_attention", fields.rope(10000.0, partial=0.25)),),
        tie_word_embeddings=fields.flag("tie_word_embeddings"),
        attention_bias=fields.flag("attention_bias"),
        delta_net=DeltaNetConfig(
            **{name: fields.number(name, size) for name, size in vars(DeltaNetConfig()).items()},
        ),
    )


def unparse(config: ModelConfig) -> dict[str, Any]:
    assert config.delta_net is not None
    return uncommon(
        config,
        "Qwen3_5ForCausalLM",
        model_type="qwen3_5_text",
        rope_parameters=flat_rope(config),
        layer_types=list(config.layer_types),
        attention_bias=config.attention_bias,
        **vars(config.delta_net),
    )


class Block(nnx.Module):
    def __init__(self, config: ModelConfig, build: Build, kind: LayerType):
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, from_zero=True)
        self.kind, bias = kind, config.attention_bias
        if kind == "linear_attention":
            self.linear_attn = DeltaNet(config, build)
        else:
            own = {"query_norm": "head", "gated": True, "from_zero": True}
            self.self_attn = Attention(config, build, kind, qkv_bias=bias, out_bias=bias, **own)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, from_zero=True)
        self.mlp = MLP(config, build)

    def __call__(self, x, span, memory):
        mixer = self.linear_attn if self.kind == "linear_attention" else self.self_attn
        mixed, memory = mixer(self.input_layernorm(x), span, memory)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), memory
