"""The quantised blocks of GGUF files: how each type packs a run of weights into bytes, undone with NumPy.

A block holds 32 or 256 consecutive weights of a row. Small types have one scale (and one minimum) a block; those
called K have a second level of integer scales, one for every 16 or 32 weights. The order of the multiplications is
that of ggml's reference, so that results are equal bit for bit. Nibbles are unsigned 4-bit numbers, low before high.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes
import numpy as np
from jaxtyping import Float32, Int32, UInt8

Blocks = UInt8[np.ndarray, "n bytes"]
Weights = Float32[np.ndarray, "n weights"]


class TensorType(NamedTuple):
    """How the values of a tensor are stored."""

    name: str
    weights: int  # a block
    bytes: int  # a block
    dtype: np.dtype  # of the values once read
    dequantise: Callable[[Blocks], Weights] | None = None  # None: the bytes are the values


def q4_0(blocks: Blocks) -> Weights:
    """Scale, then 32 nibbles of 8 more than the value."""
    return _float16(blocks, 0) * (_nibbles(blocks[:, 2:]) - 8).astype(np.float32)


def q4_1(blocks: Blocks) -> Weights:
    """Scale, minimum, then 32 nibbles."""
    return _float16(blocks, 0) * _nibbles(blocks[:, 4:]).astype(np.float32) + _float16(blocks, 2)


def q5_0(blocks: Blocks) -> Weights:
    """Scale, the fifth bits of the 32 weights, then their nibbles; 16 more than the value."""
    quants = _nibbles(blocks[:, 6:]) + 16 * _bits(blocks[:, 2:6])
    return _float16(blocks, 0) * (quants - 16).astype(np.float32)


def q5_1(blocks: Blocks) -> Weights:
    """Scale, minimum, the fifth bits of the 32 weights, then their nibbles."""
    quants = _nibbles(blocks[:, 8:]) + 16 * _bits(blocks[:, 4:8])
    return _float16(blocks, 0) * quants.astype(np.float32) + _float16(blocks, 2)


def q8_0(blocks: Blocks) -> Weights:
    """Scale, then 32 signed bytes."""
    return _float16(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def q4_k(blocks: Blocks) -> Weights:
    """Scales of scales and of minima, 8 of each in 6 bits, then 256 nibbles in four runs of 32 bytes."""
    nibbles = _nibbles(blocks[:, 16:].reshape(-1, 32))  # [4n, 64], the low half before the high
    return _with_6_bit_scales(blocks, nibbles.reshape(-1, 8, 32))


def q5_k(blocks: Blocks) -> Weights:
    """As `q4_k`, with the fifth bits between: bit j of byte i is of weight i of the j-th run of 32."""
    nibbles = _nibbles(blocks[:, 48:].reshape(-1, 32)).reshape(-1, 8, 32)
    fifth = np.unpackbits(blocks[:, 16:48, None], axis=2, bitorder="little").swapaxes(1, 2)  # [n, 8, 32]
    return _with_6_bit_scales(blocks, nibbles + 16 * fifth.astype(np.int32))


def q6_k(blocks: Blocks) -> Weights:
    """Low 4 bits, high 2 bits of 256 weights (32 more than the value), 16 signed scales, and the scale of scales."""
    low = _nibbles(blocks[:, :128].reshape(-1, 64)).reshape(-1, 8, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = (blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & 3  # [n, 2, 4, 32]
    quants = (low + 16 * high.reshape(-1, 8, 32).astype(np.int32) - 32).reshape(-1, 16, 16)
    scales = _float16(blocks, 208) * blocks[:, 192:208].view(np.int8).astype(np.float32)
    return (scales[:, :, None] * quants.astype(np.float32)).reshape(-1, 256)


def _float16(blocks: Blocks, at: int) -> Float32[np.ndarray, "n 1"]:
    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)


def _nibbles(packed: UInt8[np.ndarray, "n bytes"]) -> Int32[np.ndarray, "n 2*bytes"]:
    """The low nibbles of all bytes, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.int32)


def _bits(packed: UInt8[np.ndarray, "n bytes"]) -> Int32[np.ndarray, "n 8*bytes"]:
    return np.unpackbits(packed, axis=1, bitorder="little").astype(np.int32)


def _with_6_bit_scales(blocks: Blocks, quants: Int32[np.ndarray, "n 8 32"]) -> Weights:
    """`quants` times the scales, less the minima, that the first 16 bytes of a block of 256 weights hold.

    Of the twelve bytes that hold them, the first four have scales 0 to 3 and the next four minima 0 to 3, in their low
    6 bits; the last four have the low 4 bits of scales and of minima 4 to 7, whose high 2 bits are those left before.
    """
    first, second, third = np.split(blocks[:, 4:16], 3, axis=1)
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)
    scale = _float16(blocks, 0) * scales.astype(np.float32)
    minimum = _float16(blocks, 2) * minima.astype(np.float32)
    return (scale[:, :, None] * quants.astype(np.float32) - minimum[:, :, None]).reshape(-1, 256)


def _plain(name: str, dtype: type) -> TensorType:
    return TensorType(name, 1, np.dtype(dtype).itemsize, np.dtype(dtype))


def _blocks(name: str, weights: int, size: int, dequantise: Callable[[Blocks], Weights]) -> TensorType:
    return TensorType(name, weights, size, np.dtype(np.float32), dequantise)


#: The types that are read, by their numbers in the format.
TYPES = {
    0: _plain("F32", np.float32),
    1: _plain("F16", np.float16),
    2: _blocks("Q4_0", 32, 18, q4_0),
    3: _blocks("Q4_1", 32, 20, q4_1),
    6: _blocks("Q5_0", 32, 22, q5_0),
    7: _blocks("Q5_1", 32, 24, q5_1),
    8: _blocks("Q8_0", 32, 34, q8_0),
    12: _blocks("Q4_K", 256, 144, q4_k),
    13: _blocks("Q5_K", 256, 176, q5_k),
    14: _blocks("Q6_K", 256, 210, q6_k),
    30: _plain("BF16", ml_dtypes.bfloat16),
}

#: What other numbers stand for, for messages.
UNREAD = {9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S"}
UNREAD |= {20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64"}
UNREAD |= {28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}
