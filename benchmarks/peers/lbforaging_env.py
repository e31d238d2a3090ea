"""lbforaging, the Python reference of Level-Based Foraging, stepped in one process with random actions."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import peer
from benchmarks.timing import Contender


def contender(sight: int | None = None, num_steps: int = 4096, seed: int = 0) -> Contender:
    """`8x8-2p-3f` without gymnasium's wrappers and checks, actions drawn in advance: the environment and little else.

    Games go on from call to call; `sight` is None (whole grid) or 2, as the package's ids have it.

    Raises:
        ValueError: for another sight, or `num_steps` below 1.
    """
    if sight not in (None, 2):
        raise ValueError(f"sight must be None (the whole grid) or 2, got {sight}")
    if num_steps < 1:
        raise ValueError(f"num_steps must be 1 or more, got {num_steps}")
    peer("lbforaging")  # registers its ids with gymnasium
    gymnasium = peer("gymnasium")
    name = f"{'' if sight is None else '2s-'}8x8-2p-3f"
    env = gymnasium.make(f"Foraging-{name}-v3", disable_env_checker=True).unwrapped
    draw = np.random.default_rng(seed)
    env.reset(seed=seed)

    def run() -> None:
        for actions in draw.integers(0, 6, size=(num_steps, 2)).tolist():
            _, _, terminated, truncated, _ = env.step(actions)
            if terminated or truncated:
                env.reset()

    return Contender(f"lbforaging {name} (Python)", run, num_steps)
