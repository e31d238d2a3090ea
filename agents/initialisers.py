"""Weight initialisers.

Orthogonal matrices usually come from a QR factorisation. On CPU that is a library call that waits for the thread pool
it runs in, and two of them in one program can wait for each other for ever when the pool has two threads. The polar
factor of a Gaussian matrix has the same (Haar) law and needs matrix products only.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

_ITERATIONS = 60  # small singular values grow by 1.5 an iteration: enough for 1e-8 of the largest


def orthogonal(scale: float = 1.0, blocks: int = 1):
    """An initialiser for kernels `[rows, columns]` whose rows or columns, whichever are fewer, are orthonormal.

    Args:
        scale: factor on the orthonormal matrix.
        blocks: columns are split into so many blocks, each orthonormal by itself (one per gate of a recurrent cell).
    """

    def init(
        key: PRNGKeyArray, shape: tuple[int, int], dtype=jnp.float32, out_sharding=None
    ) -> Float[Array, "rows columns"]:
        del out_sharding
        rows, columns = shape
        gaussian = jax.random.normal(key, (blocks, rows, columns // blocks), jnp.float32)
        matrix = jnp.moveaxis(jax.vmap(polar_factor)(gaussian), 0, 1).reshape(rows, columns)
        return (scale * matrix).astype(dtype)

    return init


def polar_factor(matrix: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """The nearest matrix with orthonormal rows or columns, by Newton and Schulz's iteration."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    start = tall / jnp.linalg.norm(tall)

    def step(_, x: Array) -> Array:
        gram = jnp.matmul(x.T, x, precision="highest")  # reduced precision would leave it far from orthogonal
        return 1.5 * x - 0.5 * jnp.matmul(x, gram, precision="highest")

    x = jax.lax.fori_loop(0, _ITERATIONS, step, start)
    return x if tall is matrix else x.T
