"""The gated feed-forward layer."""

from __future__ import annotations

import functools

import jax
from flax import nnx
from jaxtyping import Array, Float

from jaxscope.agents.llm.config import ModelConfig
from jaxscope.agents.llm.linear import Build, Fused

ACTIVATIONS = {
    "silu": jax.nn.silu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_pytorch_tanh": functools.partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
}


class MLP(nnx.Module):
    """`down(activation(gate(x)) * up(x))`."""

    def __init__(self, config: ModelConfig, build: Build):
        width, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.activation = config.hidden_act
        if build.fused:
            self.gate_up = Fused(build, width, {"gate_proj": inner, "up_proj": inner}, bias)
        else:
            self.gate_up = None
            self.gate_proj = build.linear("gate_proj", width, inner, bias)
            self.up_proj = build.linear("up_proj", width, inner, bias)
        self.down_proj = build.linear("down_proj", inner, width, bias)

    def __call__(self, x: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
        gate, up = (self.gate_proj(x), self.up_proj(x)) if self.gate_up is None else self.gate_up(x)
        return self.down_proj(ACTIVATIONS[self.activation](gate) * up)
