"""Llama (Touvron et al., 2023): Llama 2 and 3, SmolLM2 and others of the same shape."""

from __future__ import annotations

from typing import Any

from flax import nnx

from jaxscope.agents.llm.attention import Attention, KeysValues
from jaxscope.agents.llm.config import Fields, LayerType, ModelConfig, common, flat_rope, uncommon
from jaxscope.agents.llm.linear import Build
from jaxscope.agents.llm.mlp import MLP
from jaxscope.agents.llm.norm import RMSNorm


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


class Block(nnx.Module):
    def __init__(self, config: ModelConfig, build: Build, kind: LayerType):
        bias = config.attention_bias
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config, build, kind, qkv_bias=bias, out_bias=bias)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config, build)

    def __call__(self, x, span, memory: KeysValues | None):
        mixed, memory = self.self_attn(self.input_layernorm(x), span, memory)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), memory
