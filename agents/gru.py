"""A gated recurrent unit over a whole sequence, with resets, and a backward pass that keeps the loop small.

The cell is that of `flax.linen.GRUCell`:

    r = sigmoid(x_r + h W_r)    z = sigmoid(x_z + h W_z)    n = tanh(x_n + r * (h W_n + b))    h' = (1 - z) n + z h

A plain scan of it multiplies by the input weights at every step, and its gradient adds an outer product to the weight
gradient at every step. Both are one large matrix product over all steps when they are taken out of the loop, which is
what this file does; only `h W` and, backwards, `d W^T` have to be sequential. The gates are kept for the backward pass:
computing them anew would take the products `h W` a second time.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from jaxscope.agents.dense import dense, outer_sum
from jaxscope.agents.initialisers import orthogonal

#: For the reset gate, the update gate and the candidate. Always three arrays and never one to be sliced: XLA:CPU does
#: not vectorise a kernel that reads one array at several offsets, which makes loops of small steps eight times slower.
Gates = tuple[Array, Array, Array]


class GRU(nnx.Module):
    """Gated recurrent unit of `hidden` units; see the module's text."""

    def __init__(self, inputs: int, hidden: int, *, rngs: nnx.Rngs):
        self.hidden = hidden
        self.input = nnx.Linear(inputs, 3 * hidden, rngs=rngs, kernel_init=orthogonal(1.0))
        self.recurrent = nnx.Linear(
            hidden, 3 * hidden, use_bias=False, rngs=rngs, kernel_init=orthogonal(1.0, blocks=3)
        )
        self.candidate_bias = nnx.Param(jnp.zeros((hidden,)))

    def step(self, carry: Float[Array, "*b h"], x: Float[Array, "*b i"]) -> Float[Array, "*b h"]:
        """The next hidden state."""
        gates = _products(carry, _by_gate(self.recurrent.kernel[...]))
        return _cell(carry, self.inputs(x), gates, _like(self.candidate_bias[...], carry))

    def unroll(
        self, carry: Float[Array, "B h"], x: Float[Array, "T B i"], reset: Bool[Array, "T B"]
    ) -> Float[Array, "T B h"]:
        """Hidden states after each step; where `reset` is true the state before that step is zero."""
        return gru_scan(carry, self.inputs(x), reset, self.recurrent.kernel[...], self.candidate_bias[...])

    def inputs(self, x: Float[Array, "*b i"]) -> Gates:
        """What the input adds to each gate."""
        assert self.input.bias is not None
        return _by_gate(dense(x, self.input.kernel[...], self.input.bias[...]))


def _like(bias: Float[Array, " h"], x: Array) -> Array:
    return bias.reshape((1,) * (x.ndim - 1) + (-1,))


def _by_gate(parameter: Float[Array, "*b 3h"]) -> Gates:
    r, z, n = jnp.split(parameter, 3, axis=-1)
    return r, z, n


def _gates(x: Gates, h: Gates, bias: Array) -> tuple[Array, Array, Array, Array]:
    """Reset gate, update gate, candidate, and the recurrent part of the candidate."""
    r, z, h_n = jax.nn.sigmoid(x[0] + h[0]), jax.nn.sigmoid(x[1] + h[1]), h[2] + bias
    return r, z, jnp.tanh(x[2] + r * h_n), h_n


def _products(h: Float[Array, "*b h"], kernels: Gates) -> Gates:
    return h @ kernels[0], h @ kernels[1], h @ kernels[2]


def _cell(carry: Array, x: Gates, h: Gates, bias: Array) -> Array:
    _, z, n, _ = _gates(x, h, bias)
    return (1.0 - z) * n + z * carry


@jax.custom_vjp
def gru_scan(
    carry: Float[Array, "B h"],
    x: Gates,
    reset: Bool[Array, "T B"],
    kernel: Float[Array, "h 3h"],
    bias: Float[Array, " h"],
) -> Float[Array, "T B h"]:
    """Hidden states of a GRU whose input products `x`, each `[T, B, h]`, are already taken."""
    return _forward(carry, x, reset, kernel, bias)[0]


def _forward(carry, x, reset, kernel, bias):
    kernels, bias_row = _by_gate(kernel), bias[None]

    def step(carry, inputs):
        x_t, reset_t = inputs
        before = jnp.where(reset_t[:, None], 0.0, carry)
        r, z, n, h_n = _gates(x_t, _products(before, kernels), bias_row)
        after = (1.0 - z) * n + z * before
        return after, (after, before, r, z, n, h_n)

    _, (after, *gates) = jax.lax.scan(step, carry, (x, reset))
    return after, (gates, reset, kernel)


def _backward(residuals, d_after):
    gates, reset, kernel = residuals
    back = tuple(k.T for k in _by_gate(kernel))

    def step(d_carry, inputs):
        d_after_t, (before, r, z, n, h_n), reset_t = inputs
        d_h = d_after_t + d_carry
        d_z = d_h * ((before - n) * z * (1.0 - z))
        d_n = d_h * ((1.0 - z) * (1.0 - n**2))
        d_r = d_n * (h_n * r * (1.0 - r))
        d_before = d_h * z + d_r @ back[0] + d_z @ back[1] + (d_n * r) @ back[2]
        return jnp.where(reset_t[:, None], 0.0, d_before), (d_r, d_z, d_n)

    start = jnp.zeros_like(d_after[0])
    d_carry, (d_r, d_z, d_n) = jax.lax.scan(step, start, (d_after, gates, reset), reverse=True)
    before, r, *_ = gates
    d_h_n = d_n * r
    d_kernel = outer_sum(before, jnp.concatenate([d_r, d_z, d_h_n], axis=-1))
    return d_carry, (d_r, d_z, d_n), None, d_kernel, d_h_n.sum(axis=(0, 1))


gru_scan.defvjp(_forward, _backward)
