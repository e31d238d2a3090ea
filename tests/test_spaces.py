"""Spaces draw what they contain and contain nothing else."""

import jax
import jax.numpy as jnp
import pytest

from jaxscope.spaces import Box, Discrete


@pytest.mark.parametrize(
    ("space", "dtype"),
    [
        (Discrete(3), jnp.int32),
        (Box(-1.0, 2.0, (2, 3)), jnp.float32),
        (Box(0, 300, (4,), integer=True), jnp.int32),
        (Box(0, 255, (40,), integer=True, byte=True), jnp.uint8),
        (Box(0, 9, (2, 3), integer=True, support=(0, 4)), jnp.int32),
    ],
)
def test_a_space_contains_what_it_draws(space, dtype):
    draws = jax.vmap(space.sample)(jax.random.split(jax.random.key(0), 50))
    assert draws.dtype == space.dtype == dtype
    assert draws.shape[1:] == space.shape
    assert jax.vmap(space.contains)(draws).all()
    assert draws.min() < draws.max()


def test_a_space_refuses_what_is_not_of_it():
    box = Box(0, 2, (2,), integer=True, byte=True)
    assert box.contains(jnp.array([0, 2], jnp.uint8))
    for wrong in (jnp.array([0, 3], jnp.uint8), jnp.zeros(3, jnp.uint8), jnp.zeros(2)):
        assert not box.contains(wrong)
    assert not Discrete(3).contains(jnp.int32(3))


def test_entries_outside_of_the_support_are_zero():
    box = Box(-1.0, 1.0, (2, 2), support=(1, 2))
    assert box.contains(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))
    for index in ((0, 0), (1, 1)):
        assert not box.contains(jnp.zeros((2, 2)).at[index].set(0.5))
    assert (box.sample(jax.random.key(0)) != 0).tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize(("low", "support"), [(0, (2, 1)), (0, (1, 1)), (0, (-1,)), (0, (4,)), (1, (0,))])
def test_a_support_is_of_ascending_indices_and_allows_zero(low, support):
    with pytest.raises(ValueError, match="support"):
        Box(low, 2, (2, 2), support=support)


@pytest.mark.parametrize("wrong", [{"high": 256}, {"low": -1}, {"integer": False}])
def test_only_small_numbers_fit_into_bytes(wrong):
    settings = {"low": 0, "high": 255, "integer": True} | wrong
    with pytest.raises(ValueError, match="only integers within 0"):
        Box(settings["low"], settings["high"], (2,), settings["integer"], byte=True)
