"""Checkpoints: what is written comes back, damage is noticed, and readers leave the writer alone."""

import gc
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxscope.runs import panels
from jaxscope.runs.checkpoints import Checkpoints
from tests.tiny_runs import ITERATIONS, copied


def test_checkpoints_keep_keys_and_dtypes_and_the_last_two(tmp_path):
    state = {
        "key": jax.random.split(jax.random.key(7), 3),
        "flags": jnp.array([True, False]),
        "count": jnp.arange(3),
        "nothing": None,
        "tuple": (jnp.ones((2, 3), jnp.bfloat16), ()),
    }
    store = Checkpoints(tmp_path)
    for iteration in (1, 2, 3):
        store.save(iteration, state)
    store.close()
    store = Checkpoints(tmp_path, writable=False)
    again = store.restore(jax.eval_shape(lambda: state))
    assert store.latest() == 3
    with pytest.raises(ValueError, match="broken"):
        store.restore(state, 1)
    store.close()
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(again), strict=True):
        assert old.dtype == new.dtype
        if jnp.issubdtype(old.dtype, jax.dtypes.prng_key):
            old, new = jax.random.key_data(old), jax.random.key_data(new)
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"a": jnp.zeros(3), "b": jnp.zeros(2)}, "a is of shape (2,) and should be of shape (3,)"),
        ({"a": jnp.zeros(2)}, "b is of shape (2,) and should be absent"),
        ({"a": jnp.zeros(2), "b": jnp.zeros(2), "c": jnp.zeros(1)}, "c is absent and should be of shape (1,)"),
        ({"a": jnp.zeros(2), "b": {"d": jnp.zeros(2)}}, "b is of shape (2,) and should be absent"),
    ],
)
def test_checkpoint_of_another_kind_is_told_by_its_arrays(other, said, tmp_path):
    store = Checkpoints(tmp_path)
    store.save(1, {"a": jnp.zeros(2), "b": jnp.zeros(2)})
    store.close()
    store = Checkpoints(tmp_path, writable=False)
    with pytest.raises(ValueError, match=re.escape(said)):
        store.restore(other)
    store.close()
    gc.collect()  # a read that was given up half way complains when it is collected, which fails the test


def test_reader_neither_makes_a_folder_nor_clears_a_write_in_progress(tmp_path):
    nothing = Checkpoints(tmp_path / "none", writable=False)
    with pytest.raises(ValueError, match="holds no complete checkpoint"):
        nothing.restore({"a": jnp.zeros(1)})
    nothing.close()
    assert not (tmp_path / "none").exists()

    folder = copied("self-play", tmp_path)
    in_progress = folder / "checkpoints" / "9.orbax-checkpoint-tmp"
    in_progress.mkdir()
    assert panels.newest_iteration(folder) == ITERATIONS
    assert len(panels.of_run(folder).names) == 2
    assert in_progress.exists()


def largest_file(folder: Path) -> Path:
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def flip_one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is not as it was written"),
        (flip_one_bit, "is not as it was written"),
        (Path.unlink, "is missing"),
    ],
)
def test_damaged_checkpoint_is_one_clear_error(damage, message, tmp_path):
    folder = copied("self-play", tmp_path)
    damage(largest_file(folder / "checkpoints" / str(ITERATIONS) / "default" / "ocdbt.process_0"))
    with pytest.raises(ValueError, match=f"checkpoint .*{ITERATIONS} is broken: .* {message}") as caught:
        panels.of_run(folder)
    assert "\n" not in str(caught.value)


def test_damage_that_no_seal_tells_of_is_an_error_too(tmp_path):
    """A kill can come between a checkpoint and its seal."""
    folder = copied("self-play", tmp_path)
    checkpoint = folder / "checkpoints" / str(ITERATIONS)
    (checkpoint / "sha256.json").unlink()
    assert len(panels.of_run(folder).names) == 2
    (checkpoint / "default" / "_METADATA").write_text("{")
    with pytest.raises(ValueError, match=f"checkpoint .*{ITERATIONS} is broken"):
        panels.of_run(folder)
