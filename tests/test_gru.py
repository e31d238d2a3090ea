"""The GRU over sequences: against Flax's cell, against a plain scan, and its hand-written gradient."""

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jaxscope.agents.gru import GRU, gru_scan
from jaxscope.agents.initialisers import orthogonal, polar_factor

T, B, INPUTS, HIDDEN = 6, 4, 3, 5


def inputs():
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (T, B, INPUTS))
    carry = jax.random.normal(keys[1], (B, HIDDEN))
    return x, carry, jax.random.bernoulli(keys[2], 0.3, (T, B))


def stepwise(gru, carry, x, reset):
    states = []
    for t in range(T):
        carry = gru.step(jnp.where(reset[t][:, None], 0.0, carry), x[t])
        states.append(carry)
    return jnp.stack(states)


def test_unroll_equals_single_steps_with_resets():
    gru = GRU(INPUTS, HIDDEN, rngs=nnx.Rngs(0))
    x, carry, reset = inputs()
    np.testing.assert_allclose(gru.unroll(carry, x, reset), stepwise(gru, carry, x, reset), atol=1e-6)


def test_cell_equals_flax():
    gru = GRU(INPUTS, HIDDEN, rngs=nnx.Rngs(1))
    gru.candidate_bias[...] = jnp.linspace(-1, 1, HIDDEN)
    x, carry, _ = inputs()
    names = ("r", "z", "n")
    assert gru.input.bias is not None
    kernels = dict(zip(names, jnp.split(gru.input.kernel[...], 3, axis=1), strict=True))
    biases = dict(zip(names, jnp.split(gru.input.bias[...], 3), strict=True))
    recurrent = dict(zip(names, jnp.split(gru.recurrent.kernel[...], 3, axis=1), strict=True))
    params = {f"i{n}": {"kernel": kernels[n], "bias": biases[n]} for n in names}
    params |= {f"h{n}": {"kernel": recurrent[n]} for n in names}
    params["hn"]["bias"] = gru.candidate_bias[...]
    theirs, _ = flax.linen.GRUCell(HIDDEN).apply({"params": params}, carry, x[0])
    np.testing.assert_allclose(gru.step(carry, x[0]), theirs, atol=1e-6)


def test_gradient_equals_that_of_a_plain_scan():
    gru = GRU(INPUTS, HIDDEN, rngs=nnx.Rngs(2))
    x, carry, reset = inputs()
    weight = jax.random.normal(jax.random.key(9), (T, B, HIDDEN))
    graph, params = nnx.split(gru)

    def loss(params, carry, x, unroll):
        return jnp.sum(weight * unroll(nnx.merge(graph, params), carry, x, reset))

    ours = jax.grad(loss, argnums=(0, 1, 2))(params, carry, x, lambda g, c, x, r: g.unroll(c, x, r))
    plain = jax.grad(loss, argnums=(0, 1, 2))(params, carry, x, stepwise)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_hidden_size_may_differ_from_the_input_size_and_the_scan_can_be_batched():
    x, carry, reset = inputs()
    gru = GRU(INPUTS, HIDDEN, rngs=nnx.Rngs(3))
    stacked = jnp.stack([gru.recurrent.kernel[...]] * 2)
    scan = lambda kernel: gru_scan(carry, gru.inputs(x), reset, kernel, gru.candidate_bias[...])  # noqa: E731
    both = jax.vmap(jax.grad(lambda kernel: scan(kernel).sum()))(stacked)
    np.testing.assert_allclose(both[0], both[1])


def test_orthogonal_kernels_are_orthonormal_for_every_shape():
    for rows, columns in ((8, 8), (3, 8), (8, 3), (64, 1)):
        kernel = orthogonal(2.0)(jax.random.key(rows * columns), (rows, columns))
        gram = kernel.T @ kernel if rows >= columns else kernel @ kernel.T
        np.testing.assert_allclose(gram, 4.0 * np.eye(min(rows, columns)), atol=1e-4)


def test_each_gate_of_a_recurrent_kernel_is_orthonormal():
    kernel = orthogonal(1.0, blocks=3)(jax.random.key(0), (8, 24))
    for gate in jnp.split(kernel, 3, axis=1):
        np.testing.assert_allclose(gate @ gate.T, np.eye(8), atol=1e-5)


def test_polar_factor_equals_that_of_the_singular_value_decomposition():
    matrix = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    u, _, v = np.linalg.svd(matrix)
    np.testing.assert_allclose(polar_factor(jnp.asarray(matrix)), u @ v, atol=1e-4)


def test_weights_of_several_seeds_are_made_without_library_calls_that_can_deadlock():
    init = jax.jit(jax.vmap(lambda key: orthogonal()(key, (8, 8))))
    program = init.lower(jax.random.split(jax.random.key(0), 2)).as_text()
    assert "lapack" not in program
