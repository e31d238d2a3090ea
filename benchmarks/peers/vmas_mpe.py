"""VMAS's versions of two particle environments: PyTorch, vectorised over games, stepped from Python.

Its spread has as many landmarks as agents. Physics are not quite those of the other particle environments: tag takes
ten substeps a step and has walls.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from benchmarks.peers import peer
from benchmarks.timing import Contender

INSTALL = "pip install vmas==1.5.2 torch==2.13.0"


class Game(NamedTuple):
    name: str  # VMAS's
    options: dict[str, int]


SPREAD = Game("simple_spread", {"n_agents": 2})
TAG = Game("simple_tag", {"num_adversaries": 2, "num_good_agents": 5, "num_landmarks": 0})


def contender(game: Game, num_envs: int, horizon: int, seed: int = 0) -> Contender:
    """Random play on the CPU: one call plays all games from a reset to the time limit, which is all that ends them.

    PyTorch gets one thread or as many as it takes by default, whichever does better at its worst in a few tries: where
    other work keeps the cores busy, its threads wait for each other.

    Raises:
        ImportError: VMAS is absent; the message says how to install it.
    """
    make = peer("vmas", INSTALL).make_env
    torch = peer("torch", INSTALL)
    env = make(game.name, num_envs=num_envs, device="cpu", continuous_actions=True, seed=seed, **game.options)
    threads = min((1, torch.get_num_threads()), key=lambda count: _seconds(torch, count, env))

    def run() -> None:
        _play(torch, threads, env, horizon)

    return Contender(f"vmas {game.name} x{num_envs} (PyTorch threads: {threads})", run, num_envs * horizon)


def _play(torch: Any, threads: int, env: Any, steps: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    env.reset()
    for _ in range(steps):
        env.step([env.get_random_action(agent) for agent in env.agents])
    torch.set_num_threads(before)


def _seconds(torch: Any, threads: int, env: Any) -> float:
    """The longest of three tries of a few steps, after one that warms up."""
    _play(torch, threads, env, 1)
    tries = []
    for _ in range(3):
        start = time.perf_counter()
        _play(torch, threads, env, 3)
        tries.append(time.perf_counter() - start)
    return max(tries)
