"""Qwen2 and Qwen2.5 (Yang et al., 2024): Llama's layers with biases on queries, keys and values."""

from __future__ import annotations

from typing import Any

from jaxscope.agents.llm.block import PreNormBlock
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


class Block(PreNormBlock):
    def __init__(self, config: ModelConfig, build: Build, kind: LayerType):
        super().__init__(config, build, kind, qkv_bias=True, out_bias=False)
