"""A run keeps its environment itself, whatever becomes of the name that it was asked for by."""

import pytest

from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.make import make
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs import settings as run_settings
from jaxscope.zsc import self_play

TINY = PPOConfig(frames=16, num_envs=4, num_steps=4, epochs=1, minibatches=2, network=NetworkConfig(4))
KITCHEN = "XXPXX\nO1 2O\nX   X\nXDXSX\n"
OTHER = "XPXXX\nO1 2O\nX   X\nXDXSX\n"


# Nothing here runs long enough to earn back what an optimised program costs.
pytestmark = pytest.mark.usefixtures("quick_compilation")


def settings(env: str) -> RunSettings:
    return RunSettings("self-play", env, self_play.Config(TINY), seeds=1, snapshots=0)


def test_a_run_outlives_the_file_of_its_layout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "kitchen.layout"
    file.write_text(KITCHEN)
    asked = settings("overcooked/./kitchen.layout?horizon=4&observation=vector")
    env = make(asked.env)
    train(asked, tmp_path / "run")
    file.write_text(OTHER)
    assert make(asked.env) != env
    assert run_settings.load(tmp_path / "run").make_env() == env
    with pytest.raises(ValueError, match="other settings than those to resume with"):
        train(asked, tmp_path / "run", resume=True)
    file.unlink()
    assert run_settings.load(tmp_path / "run").make_env() == env


def test_two_names_of_one_environment_are_one(tmp_path):
    spelled = "lbf/5x5-2p-1f?penalty=0.0"
    assert make(spelled).name == "lbf/5x5-2p-1f"
    train(settings(spelled), tmp_path / "run")
    assert run_settings.load(tmp_path / "run").env == "lbf/5x5-2p-1f"
    train(settings(spelled), tmp_path / "run", resume=True)
