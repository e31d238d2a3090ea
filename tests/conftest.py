"""Strict checks for the whole test run, set before JAX is imported."""

import os

import pytest

os.environ.setdefault("JAX_DEBUG_KEY_REUSE", "1")
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
# Eight devices where one is, so that sharding is tested on any machine.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture
def quick_compilation():
    """Programs are compiled without most optimisations while a test runs."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
