"""The layer that most families share: normalise, attend, add; normalise, feed forward, add."""

from __future__ import annotations

from typing import Any

from flax import nnx
from jaxtyping import Array, Float

from jaxscope.agents.llm.attention import Attention, KeysValues
from jaxscope.agents.llm.config import LayerType, ModelConfig
from jaxscope.agents.llm.linear import Build
from jaxscope.agents.llm.mlp import MLP
from jaxscope.agents.llm.norm import RMSNorm
from jaxscope.agents.llm.span import Span


class PreNormBlock(nnx.Module):
    """Names are Hugging Face's: `input_layernorm` comes before attention, `post_attention_layernorm` before the MLP.

    Args:
        attention: the keyword arguments of `Attention`.
    """

    def __init__(self, config: ModelConfig, build: Build, kind: LayerType, **attention: Any):
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config, build, kind, **attention)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config, build)

    def __call__(
        self, x: Float[Array, "B T d"], span: Span, memory: KeysValues | None
    ) -> tuple[Float[Array, "B T d"], KeysValues | None]:
        mixed, memory = self.self_attn(self.input_layernorm(x), span, memory)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), memory
