"""Continuous actions learn in the same loop: Rendezvous in seconds, Predator-Prey by hand (`pytest -m slow`)."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.runs.metrics import read
from jaxscope.zsc import popplay, self_play

MEETING = 2.0  # the whole return of Rendezvous


def test_self_play_meets_in_rendezvous(tmp_path):
    """Random players meet in one game of twenty."""
    settings = RunSettings("self-play", "pmr", self_play.Config(PPOConfig(frames=256_000)), seeds=1, snapshots=0)
    train(settings, tmp_path / "run")
    lines = read(tmp_path / "run" / "metrics.jsonl")
    last = [line for line in lines if line["iteration"] == settings.config.iterations]
    assert len(last) == 1
    assert min(line["return"] for line in last) > 0.9 * MEETING


@pytest.mark.slow
def test_popplay_beats_a_greedy_predator_with_held_out_partners(tmp_path):
    """The settings that `docs/environments.md` recommends: a limit of 25 steps is part of the task, and small rollouts
    let the learner settle for one direction early, whatever prey stands there."""
    folder = tmp_path / "run"
    ppo = PPOConfig(frames=8_000_000, num_envs=1024, bootstrap_truncation=False, network=NetworkConfig(normalise=True))
    settings = RunSettings(
        "popplay", "predator_prey", popplay.Config(ppo), seeds=2, partners=("training",), snapshots=0, devices=2
    )
    train(settings, folder)
    evaluate_runs([folder], episodes=100)
    found = json.loads((folder / "eval.json").read_text())["groups"]["held-out"]
    # What the greedy one reaches with these partners, from 1,500 episodes each: the table of its rules.
    greedy = {"closest-prey": 0.90, "rabbit-only": 1.17, "stag-only": 0.67, "teammate-biased": 1.70}
    assert set(greedy) == set(found["partners"])
    assert min(found["mean"]) > np.mean(list(greedy.values()))
