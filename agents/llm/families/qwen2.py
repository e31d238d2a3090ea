"""Qwen2 and Qwen2.5 (Yang et al., 2024): Llama's layers with biases on queries, keys and values."""

from __future__ import annotations

from typing import Any

from flax import nnx

from jaxscope.agents.llm.attention import Attention, KeysValues
from jaxscope.agents.llm.config import (
    Fields,
    LayerType,
    ModelConfig,
    common,
    flat_rope,
    sliding_layers,
    uncommon,
)
from jaxscope.agents.llm.linear import Build
from jaxscope.agents.llm.mlp import MLP
from jaxscope.agents.llm.norm import RMSNorm


def parse(fields: Fields) -> ModelConfig:
    fields.must_be("use_mrope", False)
    kinds, window = sliding_layers(fields, fields.depth())
    rope = fields.rope(10000.0)
    return ModelConfig(
        **common(fields, num_key_value_heads=fields.whole("num_key_value_heads")),
        layer_types=kinds,
        ropes=(("full_attention", rope), ("sliding_attention", rope)),
        sliding_window=window,
        tie_word_embeddings=fields.flag("tie_word_embeddings"),
    )


def unparse(config: ModelConfig) -> dict[str, Any]:
    return uncommon(
        config,
        "Qwen2ForCausalLM",
        rope_parameters=flat_rope(config),
        layer_types=list(config.layer_types),
        use_sliding_window=config.sliding_window is not None,
        sliding_window=config.sliding_window,
    )


class Block(nnx.Module):
    def __init__(self, config: ModelConfig, build: Build, kind: LayerType):
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config, build, kind, qkv_bias=True, out_bias=False)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config, build)

    def __call__(self, x, span, memory: KeysValues | None):
        mixed, memory = self.self_attn(self.input_layernorm(x), span, memory)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), memory
