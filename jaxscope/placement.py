"""Where arrays live when environments are spread over devices."""

from __future__ import annotations

import jax
from jax.sharding import PartitionSpec
from jaxtyping import Array

#: Mesh axis over which the environments of one run are spread.
ENVIRONMENTS = "environments"


def spread(x: Array, axis: int) -> Array:
    """`x` with one axis spread over the mesh axis of environments, if the program runs on such a mesh.

    Without it, XLA keeps what a shuffle produces whole on every device, and each device computes everything.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if ENVIRONMENTS not in mesh.axis_names or x.shape[axis] % mesh.shape[ENVIRONMENTS]:
        return x
    spec = PartitionSpec(*[PartitionSpec.UNCONSTRAINED] * axis, ENVIRONMENTS)
    return jax.lax.with_sharding_constraint(x, spec)
