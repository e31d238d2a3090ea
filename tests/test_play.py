"""Playing at the keyboard, through a pseudo-terminal, and what the file of the episode is good for."""

import codecs
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxscope
from jaxscope.cli import _screen, main
from jaxscope.cli.play import _free
from jaxscope.evaluation.episode import Episode, replay
from jaxscope.types import Playable
from tests.tiny_runs import environment

KITCHEN = "overcooked/cramped_room?horizon=8"


class Terminal:
    """A command that runs with a terminal of its own, 60 columns by 20 rows."""

    def __init__(self, folder: Path, *words: str):
        self.end, other = pty.openpty()
        termios.tcsetwinsize(self.end, (20, 60))
        command = [str(Path(sys.executable).with_name("jaxscope")), *words]
        ends: dict[str, Any] = {"stdin": other, "stdout": other, "stderr": other}
        variables = environment() | {"TERM": "xterm", "COLUMNS": "", "LINES": ""}
        self.process = subprocess.Popen(command, cwd=folder, env=variables, start_new_session=True, **ends)
        os.close(other)
        self.seen = ""
        self.decoded = codecs.getincrementaldecoder("utf-8")()

    def read_until(self, words: str, seconds: float = 120.0) -> str:
        """All output up to and including `words`, which must come."""
        until = time.monotonic() + seconds
        while words not in self.seen:
            ready, _, _ = select.select([self.end], [], [], max(until - time.monotonic(), 0))
            try:
                piece = os.read(self.end, 65536) if ready else b""
            except OSError:  # the other side is closed
                piece = b""
            assert piece, f"{words!r} did not come; the end of what came: {self.seen[-400:]!r}"
            self.seen += self.decoded.decode(piece)
        found, _, self.seen = self.seen.partition(words)
        return found + words

    def press(self, keys: str) -> None:
        os.write(self.end, keys.encode())

    def status(self) -> int:
        status = self.process.wait()
        os.close(self.end)
        return status


UP, LEFT, RIGHT = "\x1b[A", "\x1b[D", "\x1bOC"


def test_a_person_plays_and_the_episode_can_be_played_again(tmp_path):
    game = Terminal(tmp_path, "play", KITCHEN, "--partner", "random", "--out", "mine.json")
    frame = game.read_until("escape: end")
    assert frame.count("▀") > 200
    assert "step 0 of 8" in frame
    for number, key in enumerate([UP, LEFT, "x", " ", RIGHT], start=1):  # x is no key
        game.press(key)
        if key != "x":
            game.read_until(f"step {number - (number > 3)} of 8")
    game.read_until("escape: end")
    game.press("....")
    game.read_until("the game is over")
    game.press("n")
    assert "\x1b[?1049l" in game.read_until("in 8 steps: mine.json")
    assert game.status() == 0

    episode = Episode.load(tmp_path / "mine.json")
    keys = jaxscope.make(KITCHEN).keys  # pyright: ignore[reportAttributeAccessIssue]
    mine = [row[0] for row in episode.actions]
    assert mine == [keys[key] for key in ("up", "left", "space", "right", ".", ".", ".", ".")]
    assert episode.seats == ("you", "random")
    _, states, rewards = replay(episode)
    assert len(states) == 9
    assert rewards.sum() == pytest.approx(episode.team_return)

    again = Terminal(tmp_path, "play", "--replay", "mine.json")
    again.read_until("escape: end")
    again.press("nn" + LEFT)
    again.read_until("step 2 of 8")
    again.read_until("step 1 of 8")
    again.press("\x1b")
    again.read_until("you in seat 0, random in seat 1: return")
    assert again.status() == 0


def test_escape_ends_a_game_and_keeps_what_was_played(tmp_path):
    game = Terminal(tmp_path, "play", "lbf/5x5-2p-1f", "--partner", "closest-food", "--seat", "1", "--seed", "4")
    game.read_until("escape: end")
    game.press(".")
    game.read_until("step 1 of 50")
    game.press("\x1b")
    game.read_until("in 1 steps: runs/played-lbf-5x5-2p-1f-closest-food-4.json")
    assert game.status() == 0
    episode = Episode.load(tmp_path / "runs" / "played-lbf-5x5-2p-1f-closest-food-4.json")
    assert episode.seats == ("closest-food", "you")
    replay(episode)


def test_no_episode_is_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = _free(Path("runs"), "played-lbf/5x5-random-0")
    assert first == Path("runs/played-lbf-5x5-random-0.json")
    Episode(KITCHEN, 0, ("a", "b"), (), 0.0).save(first)
    assert _free(Path("runs"), "played-lbf/5x5-random-0") == Path("runs/played-lbf-5x5-random-0-2.json")


def test_an_episode_that_does_not_repeat_itself_is_refused():
    actions = tuple((5, 4) for _ in range(3))
    with pytest.raises(ValueError, match="was 20 and is 0"):
        replay(Episode(KITCHEN, 0, ("a", "b"), actions, 20.0))


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"actions": [[0]]}, {"actions": 3}, {"seats": None}, {"more": 1}, {"seed": "x"}, {"env": 3}],
)
def test_a_damaged_episode_is_refused(change, tmp_path):
    path = tmp_path / "episode.json"
    Episode(KITCHEN, 0, ("a", "b"), ((0, 1),), 0.0).save(path)
    assert Episode.load(path).actions == ((0, 1),)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match="holds no episode"):
        Episode.load(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["play"], "name an environment"),
        (["play", "matching/4"], "cannot be played"),
        (["play", KITCHEN, "--seat", "2"], "has the seats 0 to 1"),
        (["play", KITCHEN, "--partner", "nobody"], "no scripted partner 'nobody'"),
        (["play", KITCHEN], "needs a terminal"),
        (["play", KITCHEN, "--partner", "training"], "is a group of partners"),
        (["play", KITCHEN, "--seed", "-1"], "seed = -1"),
        (["play", KITCHEN, "--out", "."], "exists already"),
        (["play", "--replay", "missing.json"], "missing.json holds no episode"),
    ],
)
def test_bad_input_is_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "false")
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 1
    assert re.fullmatch(f"jaxscope: .*{re.escape(said)}.*\n", capsys.readouterr().err)


@pytest.mark.parametrize("size", [(10, 5), (60, 20), (200, 80)])
def test_a_picture_fits_the_terminal_and_keeps_its_shape(size):
    env = jaxscope.make("overcooked/cramped_room")
    assert isinstance(env, Playable)
    picture = env.render(env.reset(jax.random.key(0))[1])  # pyright: ignore[reportAttributeAccessIssue]
    lines = _screen.half_blocks(picture, *size)
    widths = {line.count("▀") for line in lines}
    assert len(widths) == 1
    assert len(lines) <= size[1]
    (width,) = widths
    assert width <= size[0]
    assert width / (2 * len(lines)) == pytest.approx(picture.shape[1] / picture.shape[0], rel=0.25)


def test_half_blocks_show_the_colours():
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0, 0] = (255, 0, 0)
    picture[1, 1] = (0, 0, 255)
    (line,) = _screen.half_blocks(picture, 2, 1)
    assert re.findall(r"(\d+;\d+;\d+)m", line) == ["255;0;0", "0;0;0", "0;0;0", "0;0;255"]


def test_the_keyboard_of_every_playable_environment_names_its_actions():
    playable = [env for env in map(jaxscope.make, jaxscope.list_envs()) if isinstance(env, Playable)]
    assert len(playable) > 5
    for env in playable:
        count = env.action_space().n  # pyright: ignore[reportAttributeAccessIssue]
        assert sorted(env.keys.values()) == list(range(count))
        assert len(env.key_names) == count
