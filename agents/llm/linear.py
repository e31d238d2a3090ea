"""Linear layers as Hugging Face stores them, `[out, in]`, with room for low-rank adapters beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

#: As the targets of adapters: every linear layer but the head.
ALL_LINEAR = ("all-linear",)


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters (Hu et al., 2021): `W x + alpha / rank * B A x`."""

    rank: int = 8
    alpha: float = 16.0
    targets: tuple[str, ...] = ("q_proj", "v_proj")
    """Names of the linear layers that get one, in all layers; `all-linear` stands for all but the head."""

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"LoRA rank = {self.rank}: must be at least 1")
        if not self.alpha > 0:
            raise ValueError(f"LoRA alpha = {self.alpha}: must be positive")
        if isinstance(self.targets, str) or not self.targets:
            raise ValueError(f"LoRA targets = {self.targets!r}: must be a tuple with at least one linear layer's name")
        if len(set(self.targets)) < len(self.targets):
            raise ValueError(f"LoRA targets = {self.targets!r}: name each linear layer once")

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    def on(self, name: str) -> bool:
        """Whether the linear layer of this name gets an adapter."""
        return self.targets == ALL_LINEAR or name in self.targets

    def check(self, linear_layers: tuple[str, ...]) -> None:
        """Refuse targets that a model does not have.

        Raises:
            ValueError: a target is none of `linear_layers`.
        """
        strange = [name for name in self.targets if name not in linear_layers]
        if strange and self.targets != ALL_LINEAR:
            allowed = ", ".join((*linear_layers, *ALL_LINEAR))
            raise ValueError(f"LoRA targets {', '.join(strange)}: the model's linear layers are {allowed}")


@dataclass(frozen=True)
class Build:
    """How the layers of a network are made."""

    std: float
    """Standard deviation of fresh weights."""
    lora: LoraConfig | None = None
    fused: bool = False
    """Projections of the same input are one matrix, for decoding."""
    rngs: nnx.Rngs = field(default_factory=lambda: nnx.Rngs(0), compare=False)

    def linear(self, name: str, inputs: int, outputs: int, bias: bool = False) -> Linear:
        return Linear(inputs, outputs, bias, self.std, self.lora_for(name, inputs, outputs), rngs=self.rngs)

    def lora_for(self, name: str, inputs: int, outputs: int) -> Lora | None:
        if self.lora is None or not self.lora.on(name):
            return None
        return Lora(inputs, outputs, self.lora, rngs=self.rngs)


class Lora(nnx.Module):
    """What an adapter adds: nothing at first, as `lora_B` starts at zero."""

    def __init__(self, inputs: int, outputs: int, config: LoraConfig, *, rngs: nnx.Rngs):
        self.scale = config.scale
        self.lora_A = nnx.LoRAParam(jax.random.normal(rngs.lora(), (config.rank, inputs)) * inputs**-0.5)
        self.lora_B = nnx.LoRAParam(jnp.zeros((outputs, config.rank)))

    def __call__(self, x: Float[Array, "*b i"]) -> Float[Array, "*b o"]:
        return times(times(x, self.lora_A[...]), self.lora_B[...]) * self.scale


class Linear(nnx.Module):
    def __init__(self, inputs: int, outputs: int, bias: bool, std: float, lora: Lora | None, *, rngs: nnx.Rngs):
        self.weight = nnx.Param(jax.random.normal(rngs.params(), (outputs, inputs)) * std)
        self.bias = nnx.Param(jnp.zeros(outputs)) if bias else None
        self.lora = lora

    def __call__(self, x: Float[Array, "*b i"]) -> Float[Array, "*b o"]:
        y = times(x, self.weight[...])
        if self.bias is not None:
            y += self.bias[...].astype(x.dtype).reshape((1,) * (y.ndim - 1) + (-1,))
        return y if self.lora is None else y + self.lora(x)


class Fused(nnx.Module):
    """Several linear layers of one input as one product; each keeps its own adapter."""

    def __init__(self, build: Build, inputs: int, parts: dict[str, int], bias: bool):
        self.sizes = tuple(parts.values())
        self.weight = nnx.Param(jax.random.normal(build.rngs.params(), (sum(self.sizes), inputs)) * build.std)
        self.bias = nnx.Param(jnp.zeros(sum(self.sizes))) if bias else None
        adapters = {name: build.lora_for(name, inputs, outputs) for name, outputs in parts.items()}
        self.lora = nnx.Dict({name: adapter for name, adapter in adapters.items() if adapter is not None})
        self.names = tuple(parts)

    def __call__(self, x: Float[Array, "*b i"]) -> list[Float[Array, "*b o"]]:
        y = times(x, self.weight[...])
        if self.bias is not None:
            y += self.bias[...].astype(x.dtype).reshape((1,) * (y.ndim - 1) + (-1,))
        starts = [sum(self.sizes[:i]) for i in range(len(self.sizes))]
        parts = [y[..., start : start + size] for start, size in zip(starts, self.sizes, strict=True)]
        return [
            part + self.lora[name](x) if name in self.lora else part
            for name, part in zip(self.names, parts, strict=True)
        ]


def times(x: Float[Array, "*b i"], weight: Float[Array, "o i"]) -> Float[Array, "*b o"]:
    """`x @ weight.T`, in the precision of `x`."""
    return jax.lax.dot_general(x, weight.astype(x.dtype), (((x.ndim - 1,), (1,)), ((), ())))
