"""Encoders: from an observation to a vector."""

from __future__ import annotations

import math
from typing import Literal

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from jaxscope.agents.dense import dense, linear
from jaxscope.agents.initialisers import orthogonal

Encoder = Literal["dense", "conv"]
Support = tuple[int, ...] | None  # as in `Box`
_ROOT2 = math.sqrt(2.0)


class DenseEncoder(nnx.Module):
    """One layer over an observation of any shape, flattened; entries outside of the space's support cost nothing."""

    def __init__(self, obs_shape: tuple[int, ...], support: Support, hidden: int, *, rngs: nnx.Rngs):
        self.obs_shape = obs_shape
        self.support = support
        self.layer = nnx.Linear(math.prod(obs_shape), hidden, kernel_init=orthogonal(_ROOT2), rngs=rngs)

    def __call__(self, obs: Float[Array, "*b *o"]) -> Float[Array, "*b h"]:
        flat = _flat(obs, len(self.obs_shape))
        if self.support is None:
            return nnx.relu(linear(self.layer, flat))
        assert self.layer.bias is not None
        some = np.array(self.support, np.int32)
        kernel = self.layer.kernel[...].at[some].get(mode="promise_in_bounds", unique_indices=True)
        flat = flat.at[..., some].get(mode="promise_in_bounds", unique_indices=True)
        return nnx.relu(dense(flat, kernel, self.layer.bias[...]))


class ConvEncoder(nnx.Module):
    """Two 3 x 3 convolutions over a grid of cells with features, then one layer over all cells.

    A convolution is written as the nine neighbours of every cell side by side and one matrix product, because one with
    weights of its own for each seed or partner, as `vmap` makes of it, is many times slower on CPU than such a product.
    """

    def __init__(self, obs_shape: tuple[int, ...], hidden: int, *, rngs: nnx.Rngs, channels: int = 32):
        width, height, features = obs_shape
        self.convs = nnx.List(
            nnx.Linear(9 * inputs, channels, kernel_init=orthogonal(_ROOT2), rngs=rngs)
            for inputs in (features, channels)
        )
        self.layer = nnx.Linear(width * height * channels, hidden, kernel_init=orthogonal(_ROOT2), rngs=rngs)

    def __call__(self, obs: Float[Array, "*b w h f"]) -> Float[Array, "*b h"]:
        for conv in self.convs:
            obs = nnx.relu(linear(conv, neighbourhoods(obs)))
        return nnx.relu(linear(self.layer, _flat(obs, 3)))


def encoder(
    kind: Encoder, obs_shape: tuple[int, ...], support: Support, hidden: int, *, rngs: nnx.Rngs
) -> DenseEncoder | ConvEncoder:
    """The encoder of a kind for observations of a shape, of which entries outside of `support` are always 0."""
    if kind == "conv":
        return ConvEncoder(obs_shape, hidden, rngs=rngs)
    return DenseEncoder(obs_shape, support, hidden, rngs=rngs)


def neighbourhoods(x: Float[Array, "*b w h f"]) -> Float[Array, "*b w h 9f"]:
    """The features of each cell and its eight neighbours, row by row; zeros beyond the border."""
    width, height = x.shape[-3:-1]
    padded = jnp.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
    shifted = [padded[..., dx : dx + width, dy : dy + height, :] for dx in range(3) for dy in range(3)]
    return jnp.concatenate(shifted, axis=-1)


def _flat(x: Array, axes: int) -> Array:
    """The last `axes` axes as one."""
    return x.reshape((*x.shape[: x.ndim - axes], -1))
