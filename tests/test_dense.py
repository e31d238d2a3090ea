"""The linear layer with its own gradient, against the plain one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxscope.agents.dense import dense


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 7), (7, 3)])
def test_value_and_gradient_equal_those_of_the_plain_layer_for_each_of_several_seeds(inputs, outputs):
    keys = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(keys[0], (2, 5, 4, inputs))  # seeds, time, rows
    kernel = jax.random.normal(keys[1], (2, inputs, outputs))
    bias = jax.random.normal(keys[2], (2, outputs))
    weight = jax.random.normal(keys[3], (5, 4, outputs))

    def plain(x, kernel, bias):
        return jnp.einsum("tbi,io->tbo", x, kernel) + bias[None, None]

    def graded(layer):
        loss = lambda *args: jnp.sum(weight * layer(*args) ** 2)  # noqa: E731
        return jax.vmap(jax.value_and_grad(loss, argnums=(0, 1, 2)))(x, kernel, bias)

    for ours, theirs in zip(jax.tree.leaves(graded(dense)), jax.tree.leaves(graded(plain)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)
