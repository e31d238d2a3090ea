"""A linear layer whose weight gradient is taken in the form that is fast on CPU."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.custom_vjp
def dense(x: Float[Array, "*b i"], kernel: Float[Array, "i o"], bias: Float[Array, " o"]) -> Float[Array, "*b o"]:
    """`x @ kernel + bias`."""
    return _forward(x, kernel, bias)[0]


def _forward(x, kernel, bias):
    return x @ kernel + bias.reshape((1,) * (x.ndim - 1) + (-1,)), (x, kernel)


def _backward(residuals, d):
    x, kernel = residuals
    return d @ kernel.T, outer_sum(x, d), d.sum(axis=tuple(range(d.ndim - 1)))


dense.defvjp(_forward, _backward)


def outer_sum(x: Float[Array, "*b i"], d: Float[Array, "*b o"]) -> Float[Array, "i o"]:
    """The sum over all rows of the outer products of `x` and `d`: the gradient of a kernel.

    Written out, and not left to differentiation, because XLA:CPU otherwise first copies the rows, the wider operand
    often, into another layout. It has to rearrange the left operand in any case, so the narrower one stands there. No
    transpose is written on it: with a batch of seeds XLA would carry it out.
    """
    x, d = x.reshape(-1, x.shape[-1]), d.reshape(-1, d.shape[-1])
    if x.shape[1] <= d.shape[1]:
        return jnp.einsum("ri,ro->io", x, d)
    return jnp.einsum("ro,ri->oi", d, x).T
