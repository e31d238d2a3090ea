"""OLMo 3 (Ai2, 2025): norms after attention and after the feed-forward layer, three sliding layers to a full one."""

from __future__ import annotations

from typing import Any

from flax import nnx

from jaxscope.agents.llm.attention import Attention, KeysValues
from jaxscope.agents.llm.config import Fields, LayerType, ModelConfig, common, uncommon
from jaxscope.agents.llm.linear import Build
from jaxscope.agents.llm.mlp import MLP
from jaxscope.agents.llm.norm import RMSNorm

_THETA = 500000.0


def parse(fields: Fields) -> ModelConfig:
    layers = fields.depth()
    by_rule: list[LayerType] = ["full_attention" if i % 4 == 3 else "sliding_attention" for i in range(layers)]
    return ModelConfig(
        **common(fields, rms_norm_eps=fields.number("rms_norm_eps", 1e-5)),
        layer_types=fields.layer_types(layers, by_rule),
        ropes=tuple((kind, fields.rope(_THETA, kind)) for kind in ("full_attention", "sliding_attention")),
        sliding_window=fields.whole("sliding_window", 4096),
        tie_word_embeddings=fields.flag("tie_word_embeddings"),
        attention_bias=fields.flag("attention_bias"),
    )


def unparse(config: ModelConfig) -> dict[str, Any]:
    return uncommon(
        config,
        "Olmo3ForCausalLM",
        rope_parameters={kind: rope.to_hugging_face() for kind, rope in config.ropes},
        layer_types=list(config.layer_types),
        sliding_window=config.sliding_window,
        attention_bias=config.attention_bias,
    )


class Block(nnx.Module):
    def __init__(self, config: ModelConfig, build: Build, kind: LayerType):
        bias = config.attention_bias
        self.self_attn = Attention(config, build, kind, qkv_bias=bias, out_bias=bias, query_norm="width")
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config, build)
        self.post_feedforward_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def __call__(self, x, span, memory: KeysValues | None):
        mixed, memory = self.self_attn(x, span, memory)
        x = x + self.post_attention_layernorm(mixed)
        return x + self.post_feedforward_layernorm(self.mlp(x)), memory
