"""Learning in Overcooked at the budgets of the literature: minutes to an hour, so by hand (`pytest -m slow`)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.runs.metrics import read
from jaxscope.zsc import popplay, self_play

SOUP = 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "encoder", "frames"),
    [
        ("overcooked/cramped_room?observation=vector", "dense", 2_000_000),
        ("overcooked/cramped_room", "conv", 1_000_000),
    ],
)
def test_self_play_serves_more_than_ten_soups_in_the_cramped_room(tmp_path, env, encoder: Any, frames):
    ppo = PPOConfig(frames=frames, network=NetworkConfig(encoder=encoder))
    train(RunSettings("self-play", env, self_play.Config(ppo), seeds=1, snapshots=0), tmp_path / "run")
    returns = [line["unshaped_return"] for line in read(tmp_path / "run" / "metrics.jsonl") if line["episodes"]]
    assert np.mean(returns[-3:]) > 10 * SOUP


@pytest.mark.slow
def test_popplay_serves_soups_with_every_held_out_partner_from_both_seats(tmp_path):
    """In the large room, where one chef has to start what another one filled, and to fill what another one serves."""
    folder = tmp_path / "run"
    settings = RunSettings(
        "popplay",
        "overcooked/large_room?observation=vector",
        popplay.Config(PPOConfig(frames=8_000_000)),
        seeds=3,
        partners=("training",),
        snapshots=0,
    )
    train(settings, folder)
    evaluate_runs([folder], episodes=20)
    found = json.loads((folder / "eval.json").read_text())["groups"]["held-out"]["unshaped"]
    assert (np.mean(found["per_seat"], axis=0) > 0).all()  # [partner, seat]
    assert sum(worst > 0 for worst in found["worst"]) >= 2
