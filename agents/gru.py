"""A gated recurrent unit over a whole sequence, with resets, and a backward pass that keeps the loop small.

The cell is that of `flax.linen.GRUCell`:

    r = sigmoid(x_r + h W_r)    z = sigmoid(x_z + h W_z)    n = tanh(x_n + r * (h W_n + b))    h' = (1 - z) n + z h

A plain scan of it multiplies by the input weights at every step, and its gradient adds an outer product to the weight
gradient at every step. Both are one large matrix product over all steps when they are taken out of the loop, which is
what this file does; only `h W` and, backwards, `d W^T` have to be sequential.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from jaxscope.agents.initialisers import orthogonal


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
        gates = jnp.matmul(carry, self.recurrent.kernel[...])
        return _cell(carry, self.input(x), gates, _like(self.candidate_bias[...], carry))

    def unroll(
        self, carry: Float[Array, "B h"], x: Float[Array, "T B i"], reset: Bool[Array, "T B"]
    ) -> Float[Array, "T B h"]:
        """Hidden states after each step; where `reset` is true the state before that step is zero."""
        return gru_scan(carry, self.input(x), reset, self.recurrent.kernel[...], self.candidate_bias[...])


def _like(bias: Float[Array, " h"], x: Array) -> Array:
    return bias.reshape((1,) * (x.ndim - 1) + (-1,))


def _gates(x: Array, h: Array, bias: Array) -> tuple[Array, Array, Array, Array]:
    """Reset gate, update gate, candidate, and the recurrent part of the candidate."""
    x_r, x_z, x_n = jnp.split(x, 3, axis=-1)
    h_r, h_z, h_n = jnp.split(h, 3, axis=-1)
    r, z, h_n = jax.nn.sigmoid(x_r + h_r), jax.nn.sigmoid(x_z + h_z), h_n + bias
    return r, z, jnp.tanh(x_n + r * h_n), h_n


def _cell(carry: Array, x: Array, h: Array, bias: Array) -> Array:
    _, z, n, _ = _gates(x, h, bias)
    return (1.0 - z) * n + z * carry


@jax.custom_vjp
def gru_scan(
    carry: Float[Array, "B h"],
    x: Float[Array, "T B 3h"],
    reset: Bool[Array, "T B"],
    kernel: Float[Array, "h 3h"],
    bias: Float[Array, " h"],
) -> Float[Array, "T B h"]:
    """Hidden states of a GRU whose input products `x` are already taken."""
    return _forward(carry, x, reset, kernel, bias)[0]


def _forward(carry, x, reset, kernel, bias):
    def step(carry, inputs):
        x_t, reset_t = inputs
        before = jnp.where(reset_t[:, None], 0.0, carry)
        after = _cell(before, x_t, before @ kernel, _like(bias, before))
        return after, (after, before)

    _, (after, before) = jax.lax.scan(step, carry, (x, reset))
    return after, (before, x, reset, kernel, bias)


def _backward(residuals, d_after):
    before, x, reset, kernel, bias = residuals
    r, z, n, h_n = _gates(x, before @ kernel, _like(bias, before))
    # Derivatives of h' by the pre-activations of z and n, and of n's by those of r: all known before the loop.
    by_z = (before - n) * z * (1.0 - z)
    by_n = (1.0 - z) * (1.0 - n**2)
    by_r = h_n * r * (1.0 - r)

    def step(d_carry, inputs):
        d_after_t, by_z_t, by_n_t, by_r_t, r_t, z_t, reset_t = inputs
        d_h = d_after_t + d_carry
        d_n = d_h * by_n_t
        d_x = jnp.concatenate([d_n * by_r_t, d_h * by_z_t, d_n], axis=-1)
        d_gates = jnp.concatenate([d_n * by_r_t, d_h * by_z_t, d_n * r_t], axis=-1)
        d_before = d_h * z_t + d_gates @ kernel.T
        return jnp.where(reset_t[:, None], 0.0, d_before), (d_x, d_gates)

    start = jnp.zeros_like(d_after[0])
    d_carry, (d_x, d_gates) = jax.lax.scan(step, start, (d_after, by_z, by_n, by_r, r, z, reset), reverse=True)
    hidden = kernel.shape[0]
    d_kernel = before.reshape(-1, hidden).T @ d_gates.reshape(-1, 3 * hidden)  # [h, T*B] @ [T*B, 3h]
    d_bias = d_gates[..., 2 * hidden :].sum(axis=(0, 1))
    return d_carry, d_x, None, d_kernel, d_bias


gru_scan.defvjp(_forward, _backward)
