"""Checkpoints, written by Orbax while training goes on: the newest learners, and snapshots of their policies."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.sharding import SingleDeviceSharding

from jaxscope.runs.seals import seal, verify
from jaxscope.types import PyTree

_ROOM_FOR_METADATA = 512 * 1024  # bytes


class Checkpoints:
    """Checkpoints of one kind in a folder. A write in progress is never taken for a checkpoint.

    Args:
        keep: how many of the newest stay; None: all.
        writable: whether this process may write: only then are remains of a killed writer cleared away. A reader makes
            no folder and does not disturb the process that writes.
    """

    def __init__(self, folder: Path, keep: int | None = 2, writable: bool = True):
        # What Orbax logs as an error it also raises; a user is told once.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        self._folder = folder.resolve()
        self._writable = writable
        self._manager = None
        if writable:
            options = ocp.CheckpointManagerOptions(max_to_keep=keep, cleanup_tmp_directories=True)
        else:
            options = ocp.CheckpointManagerOptions(read_only=True, create=False, save_interval_steps=0)
        if writable or self._folder.is_dir():
            handler = ocp.StandardCheckpointHandler()
            self._manager = ocp.CheckpointManager(self._folder, options=options, item_handlers=handler)

    def latest(self) -> int | None:
        """The iteration of the newest checkpoint."""
        return None if self._manager is None else self._manager.latest_step()

    def iterations(self) -> list[int]:
        """The iterations of all checkpoints, in order."""
        return [] if self._manager is None else sorted(self._manager.all_steps())

    def save(self, iteration: int, state: PyTree) -> None:
        """Start writing `state`; its arrays may be donated as soon as this returns.

        Raises:
            OSError: this write or the one before failed.
        """
        assert self._manager is not None
        if iteration in self._manager.all_steps():
            return
        plain = _without_keys(state)
        self.finish()
        with self._writing():
            self._require_room(sum(leaf.nbytes for leaf in jax.tree.leaves(plain)))
            self._manager.save(iteration, args=ocp.args.StandardSave(plain))

    def restore(self, like: PyTree, iteration: int | None = None) -> PyTree:
        """The state of a checkpoint (the newest by default), with the structure and sharding of `like`.

        Leaves of `like` without a sharding go to the first device, wherever they were when they were saved.

        Raises:
            ValueError: there is no checkpoint, or it is damaged or of another kind.
        """
        iteration = self.latest() if iteration is None else iteration
        if self._manager is None or iteration is None:
            raise ValueError(f"{self._folder} holds no complete checkpoint")
        abstract = jax.tree.map(_abstract, like)
        checkpoint = self._folder / str(iteration)
        try:
            verify(checkpoint)
            _require_same_arrays(abstract, self._manager.item_metadata(iteration))
            state = self._manager.restore(iteration, args=ocp.args.StandardRestore(abstract))
        except Exception as error:  # storage raises many kinds; a damaged checkpoint is one thing to a user
            raise ValueError(f"checkpoint {checkpoint} is broken: {_first_line(error)}") from error
        return jax.tree.map(lambda leaf, was: jax.random.wrap_key_data(leaf) if _is_key(was) else leaf, state, like)

    def close(self) -> None:
        """Wait for the write in progress.

        Raises:
            OSError: the write failed, for example on a full disk.
        """
        if self._manager is None:
            return
        try:
            self.finish()
        finally:
            self._manager.close()

    def finish(self) -> None:
        """Wait for the write in progress, and note what was written."""
        assert self._manager is not None
        with self._writing():
            self._manager.wait_until_finished()
            written = [self._folder / str(iteration) for iteration in self._manager.all_steps()]
            for checkpoint in written if self._writable else ():
                if checkpoint.is_dir():  # a write that failed is counted as a step for a while
                    seal(checkpoint)

    def _require_room(self, size: int) -> None:
        """Find out that the disk is full before Orbax does, whose threads would each print a traceback about it."""
        if shutil.disk_usage(self._folder).free < size + _ROOM_FOR_METADATA:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._folder))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Any failure as the operating system's error behind it, if there was one."""
        try:
            yield
        except OSError:
            raise
        except Exception as error:
            code = re.search(r"os_error_code='(\d+)'", str(error))
            number = int(code.group(1)) if code else errno.EIO
            reason = os.strerror(number) if code else _first_line(error)
            raise OSError(number, reason, str(self._folder)) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _require_same_arrays(expected: PyTree, metadata: Any) -> None:
    """Compare names and shapes before anything is read: Orbax notices a difference only in the middle of its reads."""
    if metadata is None:
        raise ValueError("it does not say which arrays it holds")
    expected, found = _shapes(expected), _shapes(metadata.tree)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise ValueError(f"{name} is {_shown(found.get(name))} and should be {_shown(expected.get(name))}")


def _shapes(tree: PyTree) -> dict[str, tuple[int, ...]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): tuple(leaf.shape) for path, leaf in leaves}


def _shown(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else f"of shape {shape}"


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _without_keys(state: PyTree) -> PyTree:
    """Random keys as plain numbers, which storage understands."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, state)


def _abstract(leaf: Any) -> jax.ShapeDtypeStruct:
    """What to restore a leaf as: its shape and kind of number, and where to put it."""
    plain = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
    sharding = getattr(leaf, "sharding", None) or SingleDeviceSharding(jax.devices()[0])
    return jax.ShapeDtypeStruct(plain.shape, plain.dtype, sharding=sharding)
