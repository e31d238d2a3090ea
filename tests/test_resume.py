"""Runs that end early, by a kill, an interrupt or a full disk, and go on as if nothing had happened."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.casting import Partnering
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs.interrupt import HeldInterrupt
from jaxscope.zsc import popplay
from tests.tiny_runs import CALLS, ITERATIONS, assert_same_run, copied, finished, jaxscope, newest, run, train_words

# Runs the command line in a process that ends itself at a chosen moment.
_DRIVER = """
import os, signal, sys
from jaxscope import cli
from jaxscope.runs import checkpoints, loop, metrics

moment, count = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored

def end():
    os.kill(os.getpid(), signal.SIGKILL)

def at(owner, name, act):
    plain, calls = getattr(owner, name), []
    def instead(*args, **options):
        if name == "save" and args[1] == 0:  # the partners of a run, before it begins
            return plain(*args, **options)
        calls.append(args)
        return (act if len(calls) == count else lambda plain, *a, **o: plain(*a, **o))(plain, *args, **options)
    setattr(owner, name, instead)

def after_line(plain, *args):
    plain(*args)
    end()

def in_line(plain, log, lines):
    log._file.write('{"iteration": 6, "fra')
    log._file.flush()
    end()

def while_writing(plain, *args):
    plain(*args)
    end()

def when_written(plain, store, *args):
    plain(store, *args)
    store._manager.wait_until_finished()
    end()

def interrupt(plain, *args):
    os.kill(os.getpid(), signal.SIGINT)
    return plain(*args)

at(*{
    "after line": (metrics.MetricsLog, "write", after_line),
    "in line": (metrics.MetricsLog, "write", in_line),
    "while writing": (checkpoints.Checkpoints, "save", while_writing),
    "when written": (checkpoints.Checkpoints, "save", when_written),
    "interrupt": (loop, "summarise", interrupt),
}[moment])
cli.main(sys.argv[3:])
"""


def end_early(moment: str, count: int, words: list) -> subprocess.CompletedProcess:
    return run([sys.executable, "-c", _DRIVER, moment, count, *words])


@pytest.mark.parametrize(
    ("method", "moment", "count"),
    [
        ("self-play", "after line", 1),  # before there is any checkpoint
        ("self-play", "in line", 3),
        # Each call saves a snapshot, then a checkpoint.
        ("self-play", "while writing", 2),
        ("self-play", "while writing", 3),
        ("self-play", "when written", 4),
        ("popplay", "after line", 1),
        ("popplay", "while writing", 1),
        ("popplay", "when written", 3),
    ],
)
def test_killed_run_resumes_bit_for_bit(method, moment, count, tmp_path):
    folder = tmp_path / "run"
    killed = end_early(moment, count, train_words(method, folder))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    whole = (finished(method) / "metrics.jsonl").read_bytes()
    assert len((folder / "metrics.jsonl").read_bytes()) < len(whole)

    resumed = jaxscope("train", method, "--resume", folder)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(folder, finished(method))


def test_statistics_and_real_numbers_resume_bit_for_bit(tmp_path):
    """Of observations and of rewards, in a game of moving points; the sizes are those of the other runs."""
    ppo = PPOConfig(
        frames=280, num_envs=8, num_steps=5, minibatches=2, epochs=2, network=NetworkConfig(8, normalise=True)
    )
    settings = RunSettings(
        "popplay",
        "pmr",
        popplay.Config(ppo, Partnering(block_size=4)),
        seeds=1,
        partners=("stay", "random"),
        iterations_per_call=2,
        checkpoint_seconds=0,
    )

    def end(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt

    learners = train(settings, tmp_path / "whole")
    assert (learners.params["normaliser"]["count"] == 280).all()
    assert (learners.reward_scale.count == 280).all()
    with pytest.raises(KeyboardInterrupt):
        train(settings, tmp_path / "run", end)
    assert newest(tmp_path / "run")[0] == 2
    train(settings, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_interrupt_in_the_middle_of_a_call_leaves_a_checkpoint_of_its_end(tmp_path):
    folder = tmp_path / "run"
    stopped = end_early("interrupt", 2, train_words("popplay", folder, checkpoint_seconds=1e6))
    assert stopped.returncode == 130
    assert "Traceback" not in stopped.stderr
    assert newest(folder)[0] == 4
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2 * 2  # calls and seeds

    resumed = jaxscope("train", "popplay", "--resume", folder)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(folder, finished("popplay"))


def test_second_interrupt_is_not_held_back():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with HeldInterrupt() as interrupt:
            assert not interrupt.asked
            signal.raise_signal(signal.SIGINT)
            assert interrupt.asked
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_ignored_interrupts_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with HeldInterrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert not interrupt.asked
    finally:
        signal.signal(signal.SIGINT, before)


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    folder = copied("popplay", tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = jaxscope("train", "popplay", "--resume", folder)
    assert again.returncode == 0, again.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


class SmallDisk:
    """A folder in which no more than `spare` bytes can be written, once `fill(spare)` was called.

    A small file system of its own where this process may mount one, else a limit on the size of files.
    """

    def __init__(self, folder: Path):
        folder.mkdir()
        self.folder, self._limit = folder, -1
        mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
        self.mounted = subprocess.run(mount, capture_output=True).returncode == 0

    def fill(self, spare: int) -> None:
        if not self.mounted:
            self._limit = max(spare, 1)
            return
        with (self.folder / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        os.truncate(self.folder / "ballast", (self.folder / "ballast").stat().st_size - spare)

    def free(self) -> None:
        self._limit = -1
        (self.folder / "ballast").unlink(missing_ok=True)

    def resume(self, method: str, run_folder: Path) -> subprocess.CompletedProcess:
        """`jaxscope train METHOD --resume RUN`, within the limit."""
        limited = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({self._limit}, {self._limit}))"
        code = f"import sys; from jaxscope import cli; {limited}; cli.main(sys.argv[1:])"
        return run([sys.executable, "-c", code, "train", method, "--resume", run_folder])

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path):
    small = SmallDisk(tmp_path / "disk")
    yield small
    small.close()


def test_full_disk_is_one_clear_line_and_loses_nothing(disk):
    folder = disk.folder / "run"
    killed = end_early("when written", 4, train_words("self-play", folder))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    # Not even metrics fit; then metrics fit and no checkpoint does.
    for spare in (0, 12 * 1024) if disk.mounted else (0,):
        disk.fill(spare)
        failed = disk.resume("self-play", folder)
        assert failed.returncode == 1
        lines = [line for line in failed.stderr.splitlines() if not line.startswith("self-play, 2 seeds: ")]
        assert len(lines) == 1, failed.stderr
        assert lines[0].startswith("jaxscope: the disk is full" if disk.mounted else "jaxscope: ")
        disk.free()
        assert newest(folder)[0] == 4 < ITERATIONS
    resumed = jaxscope("train", "self-play", "--resume", folder)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_run(folder, finished("self-play"))


def test_every_call_was_logged_for_every_seed():
    assert len((finished("self-play") / "metrics.jsonl").read_text().splitlines()) == CALLS * 2
