"""Llama (Touvron et al., 2023): Llama 2 and 3, SmolLM2 and others of the same shape."""

from __future__ import annotations

from typing import Any

from jaxscope.agents.llm.block import PreNormBlock
from jaxscope.agents.llm.config import Fields, LayerType, ModelConfig, common, flat_rope, uncommon
from jaxscope.agents.llm.linear import Build


def parse(fields: Fields) -> ModelConfig:
    fields.must_be("rope_interleaved", False)
    layers = fields.depth()
    return ModelConfig(
        **common(fields),
        layer_types=("full_attention",) * layers,
        ropes=(("full_attention", fields.rope(10000.0)),),
        tie_word_embeddings=fields.flag("tie_word_embeddings"),
        attention_bias=fields.flag("attention_bias"),
        mlp_bias=fields.flag("mlp_bias"),
    )


def unparse(config: ModelConfig) -> dict[str, Any]:
    biases = {"attention_bias": config.attention_bias, "mlp_bias": config.mlp_bias}
    return uncommon(config, "LlamaForCausalLM", rope_parameters=flat_rope(config), **biases)


class Block(PreNormBlock):
    def __init__(self, config: ModelConfig, build: Build, kind: LayerType):
        bias = config.attention_bias
        super().__init__(config, build, kind, qkv_bias=bias, out_bias=bias)
