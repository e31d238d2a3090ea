"""The host loop: compiled blocks of iterations, and between them logging and checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxscope.metrics import Metrics
from jaxscope.runs import panels, snapshots
from jaxscope.runs import settings as run_settings
from jaxscope.runs.checkpoints import Checkpoints
from jaxscope.runs.interrupt import HeldInterrupt
from jaxscope.runs.metrics import MetricsLog, summarise
from jaxscope.runs.settings import RunSettings
from jaxscope.runs.sharding import mesh_of, shard
from jaxscope.types import Environment, Policy, PyTree

#: For a program that runs once.
_COMPILE_QUICKLY: Any = {"xla_backend_optimization_level": 0}
#: On CPU the highest level, 3, takes a third longer to compile a block and does not make it faster.
_CPU_BLOCK: Any = {"xla_backend_optimization_level": 2}


class Progress(NamedTuple):
    """What the host knows after a call, for progress bars and trackers."""

    iteration: int
    iterations: int
    frames: int  # per seed
    lines: list[dict]  # of metrics.jsonl, one per seed; none before the first call


def train(
    settings: RunSettings,
    folder: Path,
    report: Callable[[Progress], None] = lambda progress: None,
    resume: bool = False,
) -> PyTree:
    """Train all seeds of a run and keep it in `folder`; returns the learners, leaves `[S, ...]`.

    Args:
        report: called before the first host call, which compiles, and after every call.
        resume: go on from the newest checkpoint in `folder` (from the start if there is none yet); the outcome is that
            of a run that was never interrupted, bit for bit with the same packages and number of devices, which is the
            one setting that may differ.

    An interrupt (Ctrl-C) lets the call in progress end, and leaves a checkpoint.

    Raises:
        ValueError: the settings do not fit together or are not those of the run to resume, or `folder` holds something
            already and `resume` is false.
        OSError: writing failed; all that was written before is whole.
        FloatingPointError: a loss is not finite.
    """
    env = settings.make_env()
    # The name that says all of the environment: the one asked for may lead to a file that changes, or moves.
    settings = dataclasses.replace(settings, env=env.name)
    panel = _prepare(settings, env, folder, resume)
    with contextlib.ExitStack() as files:
        checkpoints = files.enter_context(contextlib.closing(Checkpoints(folder / "checkpoints")))
        learners, start = _first_learners(settings, env, panel, checkpoints)
        kept = files.enter_context(contextlib.closing(snapshots.store(folder)))
        log = files.enter_context(contextlib.closing(MetricsLog(folder / "metrics.jsonl", resume_at=start)))
        return _run(settings, env, panel, learners, start, _Files(checkpoints, kept, log), report)


def _prepare(settings: RunSettings, env: Environment, folder: Path, resume: bool) -> panels.Panel | None:
    """Make the folder with all that a resumed run needs; the partners of the run."""
    if (folder / "config.json").exists():
        if not resume:
            raise ValueError(f"{folder} holds a run already; resume it, or choose another folder")
        if dataclasses.replace(run_settings.load(folder), devices=settings.devices) != settings:
            raise ValueError(f"{folder} holds a run with other settings than those to resume with")
        return panels.load(folder / "population", env) if settings.module.MEETS_PARTNERS else None
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty and holds no run; choose another folder")
    panel = None
    if settings.module.MEETS_PARTNERS:
        panel = panels.resolve(settings.partners, env)
    elif settings.partners:
        raise ValueError(f"{settings.method} meets no partners, but was given {', '.join(settings.partners)}")
    _abstract_learners(settings, env, panel)  # settings that do not fit fail before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    if panel is not None:
        panels.save(panel, folder / "population")
    run_settings.save(settings, folder)
    return panel


def _first_learners(settings, env, panel, checkpoints: Checkpoints) -> tuple[PyTree, int]:
    if checkpoints.latest() is None:
        begin = jax.jit(lambda: panels.begin(settings, env, panel), compiler_options=_COMPILE_QUICKLY)
        learners = begin()
        return shard(learners, settings.module.partition, settings.devices), 0
    return checkpoints.restore(_abstract_learners(settings, env, panel)), checkpoints.latest() or 0


def _abstract_learners(settings, env, panel) -> PyTree:
    learners = jax.eval_shape(lambda: panels.begin(settings, env, panel))
    return shard(learners, settings.module.partition, settings.devices)


def compiled_block(settings: RunSettings, env: Environment, policies: tuple[Policy, ...]):
    """The compiled function `(learners, n) -> learners, metrics`: n iterations of all seeds, n at most
    `iterations_per_call`. Metrics are `[iterations_per_call, S, ...]`, of which the first n rows are filled."""
    iteration = lambda learner: settings.module.iteration(settings.config, env, policies, learner)  # noqa: E731
    # Compiled apart only to be traced once, for the shapes of its metrics and for the loop.
    step = jax.jit(_for_one(iteration) if settings.seeds == 1 else jax.vmap(iteration))

    def block(learners: PyTree, n: Int[Array, ""]) -> tuple[PyTree, Metrics]:
        one = jax.eval_shape(step, learners)[1]
        room = jax.tree.map(lambda m: jnp.zeros((settings.iterations_per_call, *m.shape), m.dtype), one)

        def body(index, carry):
            learners, filled = carry
            learners, metrics = step(learners)
            return learners, jax.tree.map(lambda rows, row: rows.at[index].set(row), filled, metrics)

        return jax.lax.fori_loop(0, n, body, (learners, room))

    options = _CPU_BLOCK if jax.default_backend() == "cpu" else None
    compiled = jax.jit(block, donate_argnums=0, compiler_options=options)
    if settings.devices == 1:
        return compiled
    mesh = mesh_of(settings.devices, settings.seeds, settings.config.num_envs)

    def on_mesh(learners: PyTree, n: Int[Array, ""]) -> tuple[PyTree, Metrics]:
        with jax.set_mesh(mesh):
            return compiled(learners, n)

    return on_mesh


class _Files(NamedTuple):
    """What a run writes to while it goes on."""

    checkpoints: Checkpoints
    snapshots: Checkpoints
    log: MetricsLog

    def save(self, iteration: int, learners: PyTree) -> None:
        """A checkpoint, once all snapshots up to it are whole: a resumed run makes none from before its start."""
        self.snapshots.finish()
        self.checkpoints.save(iteration, learners)


def _for_one(iteration: Callable) -> Callable:
    """`jax.vmap(iteration)` for a leading axis of one, without batched products, which are slower on CPU."""

    def step(learners: PyTree) -> PyTree:
        outcome = iteration(jax.tree.map(lambda leaf: leaf[0], learners))
        return jax.tree.map(lambda leaf: leaf[None], outcome)

    return step


def _run(settings, env, panel, learners, start: int, files: _Files, report) -> PyTree:
    policies, names = (panel.policies, panel.names) if panel else ((), ())
    block = compiled_block(settings, env, policies)
    total = settings.config.iterations
    saved_at, iteration = time.monotonic(), start
    if start < total:
        report(Progress(start, total, start * settings.config.frames_per_iteration, []))
    with HeldInterrupt() as interrupt:
        _keep_snapshot(settings, iteration, learners, files)
        while iteration < total and not interrupt.asked:
            n = min(settings.iterations_per_call, total - iteration)
            learners, metrics = block(learners, jnp.asarray(n, jnp.int32))
            rows = jax.tree.map(lambda values: np.asarray(values)[:n], metrics)  # noqa: B023  # used at once
            iteration += n
            _require_finite(rows, iteration)
            frames = iteration * settings.config.frames_per_iteration
            lines = summarise(rows, iteration, frames, names)
            files.log.write(lines)
            report(Progress(iteration, total, frames, lines))
            _keep_snapshot(settings, iteration, learners, files)
            if time.monotonic() - saved_at >= settings.checkpoint_seconds:
                files.save(iteration, learners)
                saved_at = time.monotonic()
        files.save(iteration, learners)
    if interrupt.asked:
        raise KeyboardInterrupt
    return learners


def _keep_snapshot(settings: RunSettings, iteration: int, learners: PyTree, files: _Files) -> None:
    if snapshots.due(settings, iteration):
        files.snapshots.save(iteration, learners.params)


def _require_finite(metrics: Metrics, iteration: int) -> None:
    for name, values in metrics.means.items():
        if not np.isfinite(values).all():
            raise FloatingPointError(f"{name} is not finite by iteration {iteration}: training diverged")
