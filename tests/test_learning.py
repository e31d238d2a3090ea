"""Methods learn: short seeded runs beat stated baselines by a margin."""

from pathlib import Path

import numpy as np
import pytest

from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.casting import Partnering
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs.metrics import read
from jaxscope.zsc import popplay, self_play

CHANCE = 0.25  # two players who name one of four conventions without looking


def config(iterations, num_envs=64, num_steps=8):
    return PPOConfig(
        frames=num_envs * num_steps * iterations,
        num_envs=num_envs,
        num_steps=num_steps,
        minibatches=2,
        learning_rate=3e-3,
        network=NetworkConfig(16),
    )


def last_returns(folder):
    lines = read(folder / "metrics.jsonl")
    last = max(line["iteration"] for line in lines)
    return [line["return"] for line in lines if line["iteration"] == last]


@pytest.fixture(scope="module")
def conventions(tmp_path_factory) -> Path:
    """Self-play seeds, each with its own convention."""
    folder = tmp_path_factory.mktemp("runs") / "self-play"
    train(RunSettings("self-play", "matching/4-8r", self_play.Config(config(40)), seeds=4), folder)
    return folder


def test_self_play_agrees_with_itself(conventions):
    assert min(last_returns(conventions)) > 0.95


@pytest.mark.parametrize("dispatch", ["block", "env"])
def test_popplay_learns_to_meet_a_population_of_conventions(conventions, dispatch, tmp_path):
    """With eight rounds, a cooperator can watch and then agree; one that cannot adapt gets the share of its own
    convention."""
    folder = tmp_path / "popplay"
    settings = RunSettings(
        "popplay",
        "matching/4-8r",
        popplay.Config(config(60), Partnering(dispatch=dispatch, block_size=8)),
        seeds=2,
        partners=(str(conventions),),
    )
    train(settings, folder)
    assert min(last_returns(folder)) > 0.7
    assert np.mean(last_returns(folder)) > CHANCE + 0.4
