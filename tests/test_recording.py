import itertools
from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image, ImageSequence

from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.drawing import SEAT_COLOURS
from jaxscope.envs.lbf import parse
from jaxscope.panel import Panel
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs.recording import record_gif, record_run
from jaxscope.spaces import Discrete
from jaxscope.types import Environment
from jaxscope.zsc import self_play


def opened(path: Path) -> tuple[list[np.ndarray], list[int], str]:
    """Frames, how long each is shown in milliseconds, and the comment."""
    frames, durations = [], []
    with Image.open(path) as image:
        comment = image.info["comment"].decode()
        for frame in ImageSequence.Iterator(image):
            durations.append(frame.info["duration"])
            frames.append(np.asarray(frame.convert("RGB")).astype(int))
    return frames, durations, comment


def test_recording_shows_a_whole_episode(tmp_path):
    env = parse("5x5-2p-1f?max_steps=12")
    panel = Panel.scripted(env, ["stay", "closest-food"])
    path = tmp_path / "recordings" / "a.gif"
    recording = record_gif(env, panel, [1, 0], jax.random.key(3), path)
    assert path.stat().st_size < 500_000
    frames, durations, words = opened(path)
    assert len(frames) == recording.steps + 1
    assert set(durations[:-1]) == {220}
    assert durations[-1] == 2000
    assert (
        words
        == f"closest-food in seat 0, stay in seat 1: return {recording.team_return:.2f} in {recording.steps} steps"
    )

    # The colours of the seats are those in which the environment draws them, in the field and in the caption.
    field = min(frames[0].shape[:2]) // 5 * 5
    for colour in SEAT_COLOURS[:2]:
        near = np.abs(frames[0] - np.array(colour)[None, None, :]).sum(-1) < 12
        assert near[:field].sum() > 50
        assert near[field:].sum() > 50
    assert (frames[0] != frames[-1]).any()

    again = tmp_path / "again.gif"
    record_gif(env, panel, [1, 0], jax.random.key(3), again)
    assert again.read_bytes() == path.read_bytes()
    record_gif(env, panel, [1, 0], jax.random.key(3), again, max_frames=3, max_bytes=path.stat().st_size // 4)
    frames, durations, _ = opened(again)
    assert len(frames) <= 3
    assert durations[-1] == 2000
    assert again.stat().st_size < path.stat().st_size


class Blind(Environment):
    """An environment that cannot draw itself."""

    num_agents = 2
    horizon = 1
    name = "blind"  # pyright: ignore[reportAssignmentType]

    def observation_space(self, agent=None):
        return Discrete(1)

    def action_space(self, agent=None):
        return Discrete(1)

    def reset(self, key):
        raise NotImplementedError

    def step_env(self, key, state, actions):
        raise NotImplementedError

    def get_obs(self, state):
        raise NotImplementedError


def test_recording_refuses_bad_input(tmp_path):
    env = parse("5x5-2p-1f")
    panel = Panel.scripted(env, ["stay"])
    with pytest.raises(ValueError, match="blind cannot be recorded: it has no method render"):
        record_gif(Blind(), panel, [0, 0], jax.random.key(0), tmp_path / "x.gif")
    with pytest.raises(ValueError, match=r"team_ids = \[0\]: lbf/5x5-2p-1f needs 2 of the members 0 to 0"):
        record_gif(env, panel, [0], jax.random.key(0), tmp_path / "x.gif")
    with pytest.raises(ValueError, match=r"team_ids = \[0, 1\]"):
        record_gif(env, panel, [0, 1], jax.random.key(0), tmp_path / "x.gif")
    with pytest.raises(ValueError, match="max_frames = 1"):
        record_gif(env, panel, [0, 0], jax.random.key(0), tmp_path / "x.gif", max_frames=1)


CONFIG = self_play.Config(PPOConfig(frames=16, num_envs=4, num_steps=4, minibatches=1, network=NetworkConfig(4)))


@pytest.mark.parametrize("env", ["pmr", "predator_prey"])
def test_a_run_among_moving_points_is_recorded(env, tmp_path):
    train(RunSettings("self-play", env, CONFIG, seeds=1, snapshots=0), tmp_path / "run")
    (written,) = record_run(tmp_path / "run", ["teammate-biased"], jax.random.key(0))
    frames, _, words = opened(written)
    assert words.startswith("run:0 in seat 0, teammate-biased in seat 1: return ")
    assert len(frames) > 10
    assert all((a != b).any() for a, b in itertools.pairwise(frames))


def test_a_run_is_recorded_with_each_partner(tmp_path):
    folder = tmp_path / "run"
    train(RunSettings("self-play", "lbf/5x5-2p-1f?max_steps=6", CONFIG, seeds=2), folder)
    written = record_run(folder, ["stay", "closest-food"], jax.random.key(0))
    assert written == [folder / "recordings" / f"with-{name}.gif" for name in ("stay", "closest-food")]
    for path, name in zip(written, ("stay", "closest-food"), strict=True):
        assert opened(path)[2].startswith(f"run:0 in seat 0, {name} in seat 1: return ")
    (alone,) = record_run(folder, [f"{folder}", "stay"], jax.random.key(0))[:1]
    assert opened(alone)[2].startswith(f"run:0 of {folder} in seat 0, run:0 in seat 1: return ")
