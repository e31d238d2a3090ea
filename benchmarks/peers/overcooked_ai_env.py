"""overcooked_ai, the Python reference of Overcooked, stepped in one process with random actions."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import peer
from benchmarks.timing import Contender

HORIZON = 400


def contender(layout: str, num_steps: int = 1024, seed: int = 0) -> Contender:
    """The game and its lossless observation, without the wrappers, actions drawn in advance.

    Raises:
        ValueError: `num_steps` is below 1.
    """
    if num_steps < 1:
        raise ValueError(f"num_steps must be 1 or more, got {num_steps}")
    game = peer("overcooked_ai_py.mdp.overcooked_mdp")
    actions = peer("overcooked_ai_py.mdp.actions").Action.INDEX_TO_ACTION
    mdp = game.OvercookedGridworld.from_layout_name(layout)
    draw = np.random.default_rng(seed)
    state = mdp.get_standard_start_state()

    def run() -> None:
        nonlocal state
        for first, second in draw.integers(0, 6, size=(num_steps, 2)).tolist():
            if state.timestep >= HORIZON:
                state = mdp.get_standard_start_state()
            state, _ = mdp.get_state_transition(state, (actions[first], actions[second]))
            mdp.lossless_state_encoding(state, HORIZON)

    return Contender(f"overcooked_ai {layout} (Python)", run, num_steps)
