"""Runs of a few seconds through the real command line, shared by the tests of runs."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxscope.runs import panels
from jaxscope.runs import settings as run_settings
from jaxscope.runs.checkpoints import Checkpoints

ENV = "matching/4-8r"
# Five steps against eight rounds: rollouts end in the middle of episodes. Seven iterations, two a call: the last call
# is shorter.
FLAGS = [
    *("--seeds", "2", "--num-envs", "8", "--num-steps", "5", "--minibatches", "2", "--epochs", "2"),
    *("--frames", "280", "--hidden", "8", "--iterations-per-call", "2"),
]
ITERATIONS = 7
CALLS = 4
SNAPSHOTS = [0, 2, 4, 6, 7]  # iterations; there are fewer calls than snapshots asked for

HOME = Path(tempfile.mkdtemp(prefix="jaxscope-tests-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)


def environment() -> dict[str, str]:
    """For child processes: one device, and programs compiled quickly, and once for all of them."""
    quick = {
        "JAX_COMPILATION_CACHE_DIR": str(HOME / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    return {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | quick


def run(words: list, **options) -> subprocess.CompletedProcess:
    """A child process, its output as text."""
    return subprocess.run([str(w) for w in words], env=environment(), capture_output=True, text=True, **options)


def jaxscope(*words, **options) -> subprocess.CompletedProcess:
    """The installed command."""
    return run([Path(sys.executable).with_name("jaxscope"), *words], **options)


def train_words(method: str, out: Path, checkpoint_seconds: float = 0) -> list:
    """The command for the run that `finished` has finished."""
    words = ["train", method, "--env", ENV, "--out", out, "--checkpoint-seconds", checkpoint_seconds, *FLAGS]
    if method == "popplay":
        words += ["--block-size", "4", "--partners", "random", finished("self-play")]
    return words


@functools.cache
def finished(method: str) -> Path:
    """The folder of a run that was never interrupted. Tests copy it before they change anything."""
    folder = HOME / method
    done = jaxscope(*train_words(method, folder))
    assert done.returncode == 0, done.stderr
    return folder


def copied(method: str, to: Path) -> Path:
    """A copy of the finished run to do anything with."""
    return Path(shutil.copytree(finished(method), to / method))


def newest(folder: Path):
    """Iteration and every leaf of the newest checkpoint of a run, by path, random keys as numbers."""
    settings = run_settings.load(folder)
    like = panels.learners_like(settings, settings.make_env(), folder)
    checkpoints = Checkpoints(folder / "checkpoints", writable=False)
    try:
        learners = checkpoints.restore(like)
        iteration = checkpoints.latest()
    finally:
        checkpoints.close()
    leaves = jax.tree_util.tree_leaves_with_path(learners)
    return iteration, {jax.tree_util.keystr(path): _numbers(leaf) for path, leaf in leaves}


def _numbers(leaf) -> np.ndarray:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def assert_same_run(folder: Path, reference: Path) -> None:
    """Both runs ended in the same state, bit for bit, kept the same snapshots, and logged the same bytes."""
    (iteration, leaves), (wanted, reference_leaves) = newest(folder), newest(reference)
    assert iteration == wanted == ITERATIONS
    assert leaves.keys() == reference_leaves.keys()
    for name, leaf in leaves.items():
        assert leaf.dtype == reference_leaves[name].dtype, name
        assert leaf.tobytes() == reference_leaves[name].tobytes(), name
    assert (folder / "metrics.jsonl").read_bytes() == (reference / "metrics.jsonl").read_bytes()
    snapshots, reference_snapshots = panels.snapshots_of_run(folder), panels.snapshots_of_run(reference)
    assert [*snapshots] == [*reference_snapshots] == SNAPSHOTS
    for at, panel in snapshots.items():
        pairs = zip(jax.tree.leaves(panel.population), jax.tree.leaves(reference_snapshots[at].population), strict=True)
        assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs), at
