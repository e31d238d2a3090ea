"""Checkpoints of a learner, written by Orbax while training goes on."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from jaxscope.types import PyTree


class Checkpoints:
    """The checkpoints of one run, the last two kept. A write in progress is never taken for a checkpoint."""

    def __init__(self, folder: Path, keep: int = 2):
        logging.getLogger("absl").setLevel(logging.ERROR)
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, cleanup_tmp_directories=True)
        self._manager = ocp.CheckpointManager(folder.resolve(), options=options)

    def latest(self) -> int | None:
        """The iteration of the newest complete checkpoint."""
        return self._manager.latest_step()

    def save(self, iteration: int, state: PyTree) -> None:
        """Start writing `state`; its arrays may be donated as soon as this returns."""
        if self._manager.latest_step() != iteration:
            self._manager.save(iteration, args=ocp.args.StandardSave(_without_keys(state)))

    def restore(self, like: PyTree, iteration: int | None = None) -> PyTree:
        """The state of a checkpoint (the newest by default), with the structure and sharding of `like`.

        Raises:
            ValueError: there is no checkpoint, or it is damaged or of another kind.
        """
        iteration = self.latest() if iteration is None else iteration
        if iteration is None:
            raise ValueError(f"{self._manager.directory} holds no complete checkpoint")
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, _without_keys(like))
        try:
            state = self._manager.restore(iteration, args=ocp.args.StandardRestore(abstract))
        except Exception as error:  # Orbax and its storage raise many kinds; a damaged checkpoint is one thing to a user
            reason = str(error).strip().splitlines()[0][:200]
            raise ValueError(f"checkpoint {self._manager.directory / str(iteration)} is broken: {reason}") from error
        return _with_keys(state, like)

    def close(self) -> None:
        """Wait for the write in progress.

        Raises:
            OSError: the write failed, for example on a full disk.
        """
        try:
            self._manager.wait_until_finished()
        finally:
            self._manager.close()


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _without_keys(state: PyTree) -> PyTree:
    """Random keys as plain numbers, which storage understands."""
    return jax.tree.map(lambda leaf: _key_data(leaf) if _is_key(leaf) else leaf, state)


def _key_data(key: Any) -> Any:
    if isinstance(key, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, key)
    return jax.random.key_data(key)


def _with_keys(state: PyTree, like: PyTree) -> PyTree:
    def restored(leaf: Any, was: Any) -> Any:
        return jax.random.wrap_key_data(leaf) if _is_key(was) else leaf

    return jax.tree.map(restored, state, like)
