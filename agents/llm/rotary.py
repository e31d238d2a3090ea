"""Rotary position embedding: the frequencies of each scaling rule, and the rotation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Scaling = Literal["default", "linear", "llama3", "yarn"]


@dataclass(frozen=True)
class RopeConfig:
    """How positions turn queries and keys; the names are those of `rope_parameters` in a Hugging Face config.json."""

    rope_theta: float = 10000.0
    """Base of the wavelengths."""
    rope_type: Scaling = "default"
    """How the wavelengths are stretched for contexts longer than those of pre-training."""
    partial_rotary_factor: float = 1.0
    """Share of a head's numbers that turn; the first ones."""
    factor: float | None = None
    """All but `default`: by how much the context grows. `yarn` takes it from the lengths where it is absent."""
    low_freq_factor: float | None = None
    """`llama3`: wavelengths above the old context divided by this are stretched in full."""
    high_freq_factor: float | None = None
    """`llama3`: wavelengths below the old context divided by this stay."""
    original_max_position_embeddings: int | None = None
    """`llama3`, `yarn`: the context of pre-training."""
    beta_fast: float | None = None
    """`yarn`: turns within the old context above which a wavelength stays; 32 where absent."""
    beta_slow: float | None = None
    """`yarn`: turns below which it is stretched in full; 1 where absent."""
    attention_factor: float | None = None
    """`yarn`: cosines and sines are multiplied by it; where absent, by a rule of `factor` and the two below."""
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True
    """`yarn`: the two bounds in between which it blends are rounded to whole numbers."""

    def __post_init__(self) -> None:
        if self.rope_type not in get_args(Scaling):
            raise ValueError(f"rope_type = {self.rope_type!r}: must be one of {', '.join(get_args(Scaling))}")
        if not isinstance(self.truncate, bool):
            raise ValueError(f"rope truncate = {self.truncate!r}: must be true or false")
        needed, others = _FIELDS[self.rope_type]
        numbers = {name: value for name, value in vars(self).items() if name not in ("rope_type", "truncate")}
        absent = [name for name in needed if numbers[name] is None]
        if absent:
            raise ValueError(f"rope_type = {self.rope_type!r} needs {', '.join(absent)}")
        used = ("rope_theta", "partial_rotary_factor", *needed, *others)
        unused = [name for name, value in numbers.items() if name not in used and value is not None]
        unused += [] if self.truncate or "truncate" in others else ["truncate"]
        if unused:
            raise ValueError(f"rope_type = {self.rope_type!r} does not use {', '.join(unused)}")
        for name, value in numbers.items():
            if value is not None and not (_is_number(value) and value > 0):
                raise ValueError(f"rope {name} = {value!r}: must be a positive number")
        if self.partial_rotary_factor > 1:
            raise ValueError(f"partial_rotary_factor = {self.partial_rotary_factor}: must be above 0, at most 1")
        if self.rope_theta <= 1:
            raise ValueError(f"rope_theta = {self.rope_theta}: must be above 1")
        if self.low_freq_factor and self.high_freq_factor and self.low_freq_factor >= self.high_freq_factor:
            raise ValueError(f"low_freq_factor = {self.low_freq_factor} must be below {self.high_freq_factor = }")

    def to_hugging_face(self) -> dict[str, Any]:
        """The fields that are set."""
        fields = {name: value for name, value in vars(self).items() if value is not None}
        return {name: value for name, value in fields.items() if not (name == "truncate" and value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


#: What each rule needs, and what else it uses.
_FIELDS: dict[Scaling, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "default": ((), ()),
    "linear": (("factor",), ()),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"), ()),
    "yarn": (
        ("original_max_position_embeddings",),
        ("factor", "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate"),
    ),
}


class Rotation(NamedTuple):
    """Cosine and sine of the angles of every token, times the scale of attention, if any."""

    cos: Float[Array, "B T r"]
    sin: Float[Array, "B T r"]


def rotation(config: RopeConfig, head_dim: int, max_positions: int, positions: Int[Array, "B T"]) -> Rotation:
    """The rotation at `positions`; `r` is half of the numbers that turn."""
    inverse, scale = frequencies(config, head_dim, max_positions)
    angles = positions[..., None].astype(jnp.float32) * jnp.asarray(inverse).reshape(1, 1, -1)
    return Rotation(jnp.cos(angles) * scale, jnp.sin(angles) * scale)


def rotate(x: Float[Array, "B T H h"], by: Rotation) -> Float[Array, "B T H h"]:
    """Turn the first `2 r` numbers of every head, the i-th together with the (r + i)-th."""
    r = by.cos.shape[-1]
    cos, sin = by.cos[:, :, None].astype(x.dtype), by.sin[:, :, None].astype(x.dtype)
    first, second, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
    turned = [first * cos - second * sin, second * cos + first * sin]
    return jnp.concatenate([*turned, rest] if rest.shape[-1] else turned, axis=-1)


def frequencies(config: RopeConfig, head_dim: int, max_positions: int) -> tuple[np.ndarray, float]:
    """Radians per position of each pair of numbers, `float32[r]`, and the scale of cosines and sines."""
    size = int(head_dim * config.partial_rotary_factor)
    exponents = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
    plain = np.float32(1.0) / np.power(np.float32(config.rope_theta), exponents)
    if config.rope_type == "linear":
        return plain / np.float32(config.factor), 1.0
    if config.rope_type == "llama3":
        return _llama3(config, plain), 1.0
    if config.rope_type == "yarn":
        return _yarn(config, plain, size, max_positions)
    return plain, 1.0


def _llama3(config: RopeConfig, plain: np.ndarray) -> np.ndarray:
    """Long waves are stretched, short ones stay, those in between are blended."""
    found = (config.factor, config.original_max_position_embeddings, config.low_freq_factor, config.high_freq_factor)
    factor, old, low, high = (float(value) for value in found if value is not None)
    waves = 2 * math.pi / plain
    blend = (old / waves - low) / (high - low)
    between = (1 - blend) * plain / factor + blend * plain
    long, short = waves > old / low, waves < old / high
    return np.where(long, plain / factor, np.where(short, plain, between)).astype(np.float32)


def _yarn(config: RopeConfig, plain: np.ndarray, size: int, max_positions: int) -> tuple[np.ndarray, float]:
    """YaRN (Peng et al., 2023): stretched by how often a wave turns within the old context; attention is scaled."""
    old = config.original_max_position_embeddings
    assert old is not None
    factor = config.factor or max_positions / old

    def dimension(turns: float) -> float:
        return size * math.log(old / (turns * 2 * math.pi)) / (2 * math.log(config.rope_theta))

    low, high = dimension(config.beta_fast or 32), dimension(config.beta_slow or 1)
    if config.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    ramp = np.clip((np.arange(size // 2, dtype=np.float32) - low) / (high - low or 0.001), 0, 1)
    inverse = plain / np.float32(factor) * ramp + plain * (1 - ramp)
    return inverse.astype(np.float32), _attention_scale(config, factor)


def _attention_scale(config: RopeConfig, factor: float) -> float:
    def of(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if config.attention_factor is not None:
        return config.attention_factor
    if config.mscale and config.mscale_all_dim:
        return of(config.mscale) / of(config.mscale_all_dim)
    return of(1.0)
