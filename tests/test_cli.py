"""The command line: help, listings, bad input, and a small project from training to the report."""

import json
import struct
import sys
from pathlib import Path

import pytest
from tensorboardX.proto import event_pb2

import jaxscope
from jaxscope import cli, registry
from jaxscope.agents.scripted import description
from jaxscope.runs import settings as run_settings
from tests.tiny_runs import ENV, FLAGS, copied, train_words
from tests.tiny_runs import jaxscope as run_jaxscope

COMMANDS = registry.names(cli.COMMANDS)
METHODS = run_settings.method_names()


@pytest.fixture(autouse=True)
def _no_compilation_cache(monkeypatch):
    """The command line chooses a cache in the home folder unless told otherwise."""
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "false")


def call(capsys, *words) -> tuple[int, str, str]:
    """Exit status, output and errors of a command in this process."""
    try:
        cli.main([str(word) for word in words])
        status = 0
    except SystemExit as stop:
        status = stop.code or 0
    out, err = capsys.readouterr()
    return int(status), out, err


def refusal(capsys, *words) -> str:
    """What a command that must refuse its input says: one line."""
    status, _, err = call(capsys, *words)
    assert status in (1, 2)
    assert err.startswith("jaxscope: ")
    assert err.count("\n") == 1, err
    return err


def help_pages():
    yield ["--help"]
    yield from ([command, "--help"] for command in COMMANDS)
    yield from (["train", method, "--help"] for method in METHODS)
    yield from (["train", method, "--resume", "x", "--help"] for method in METHODS)


@pytest.mark.parametrize("words", [*help_pages()], ids=" ".join)
def test_help(words, capsys):
    status, out, err = call(capsys, *words)
    assert (status, err) == (0, "")
    assert "usage" in out


def test_overview_names_every_command(capsys):
    for words in ([], ["--help"]):
        status, out, _ = call(capsys, *words)
        assert status == 0
        assert set(COMMANDS) <= set(out.split())


def test_version(capsys):
    assert call(capsys, "--version") == (0, f"jaxscope {jaxscope.__version__}\n", "")


def test_list_shows_everything_there_is(capsys):
    status, out, _ = call(capsys, "list")
    assert status == 0
    for name in jaxscope.list_envs() + METHODS:
        assert name in out
    partners = [(env, name) for env in registry.names("jaxscope.envs") for name in jaxscope.list_partners(env)]
    assert len(partners) > 10
    text = " ".join(out.replace("│", " ").split())
    for env, name in partners:
        assert name in text
        assert description(name, env) in text


def test_list_shows_the_part_that_is_asked_for(capsys):
    assert "closest-food" not in call(capsys, "list", "partners", "--env", "matching/4")[1]
    assert "closest-food" in call(capsys, "list", "partners", "--env", "lbf")[1]
    assert "popplay" not in call(capsys, "list", "envs")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nonsense", "there is no command 'nonsense'"),
        ("trian", "Did you mean 'train'?"),
        ("train nonsense", "there is no method 'nonsense'"),
        ("train self-play --env nonsense/4", "there is no environment 'nonsense/4'"),
        ("train self-play --env matching/x", "matching has no variant 'x'"),
        ("train self-play --env matching", "needs a variant"),
        ("train self-play --env matching/1", "conventions = 1"),
        ("train self-play --num-envs -8", "num_envs = -8: must be at least 1"),
        ("train self-play --num-envs many", "--num-envs"),
        ("train self-play --num-envs 8 --minibatches 3", "multiple of minibatches = 3"),
        ("train self-play --hidden 0", "hidden = 0"),
        ("train self-play --frames 3", "less than one iteration"),
        ("train self-play --seeds 0", "seeds = 0: must be at least 1"),
        ("train self-play --seed -1", "seed = -1"),
        ("train self-play --seed 99999999999999999999", "seed = 99999999999999999999"),
        ("train self-play --iterations-per-call 0", "iterations_per_call = 0"),
        ("train self-play --checkpoint-seconds -1", "checkpoint_seconds = -1.0"),
        ("train self-play --learning-rate nan", "learning_rate = nan"),
        ("train self-play --nonsense 3", "--nonsense"),
        ("train self-play --partners random", "--partners"),
        ("train popplay --env matching/4", "no training partners"),
        ("train popplay --env matching/4 --partners nobody", "has no scripted partner 'nobody'"),
        ("train popplay --env matching/4 --partners nowhere/run", "nowhere/run is not a run"),
        ("train popplay --env matching/4 --partners random random", "two members are called 'random'"),
        ("train popplay --env matching/4 --partners random --block-size 7", "multiple of block_size = 7"),
        ("train self-play --env matching/4 --devices 1000", "devices = 1000: this machine has"),
        ("train self-play --resume nowhere", "nowhere is not a run"),
        ("train self-play --resume nowhere --seed 3", "--seed"),
        ("eval", "name at least one run folder"),
        ("eval nowhere", "nowhere is not a run"),
        ("crossplay", "name at least one run folder"),
        ("crossplay nowhere", "nowhere is not a run"),
        ("report", "name at least one run folder"),
        ("report nowhere", "nowhere is not a run"),
        ("list nonsense", "nonsense"),
        ("list --env nonsense", "there is no environment 'nonsense'"),
        ("demo --env matching/4", "no training partners"),
        ("demo --episodes 1", "episodes = 1"),
        ("demo --frames 1", "less than one iteration"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in refusal(capsys, *words.split())
    assert not list(tmp_path.iterdir())


def test_bad_input_about_runs_is_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = copied("self-play", tmp_path)
    train = ["train", "self-play", "--env", ENV, "--out", run]
    assert "holds a run already" in refusal(capsys, *train, *FLAGS)
    assert "is a run of self-play, not of popplay" in refusal(capsys, "train", "popplay", "--resume", run)
    assert "there are no partners to evaluate with" in refusal(capsys, "eval", run)
    assert "episodes = 1" in refusal(capsys, "eval", run, "--partners", "random", "--episodes", "1")
    assert "cannot be recorded" in refusal(capsys, "eval", run, "--partners", "random", "--record")
    assert "episodes = 0" in refusal(capsys, "crossplay", run, "--episodes", "0")
    assert "two members are called" in refusal(capsys, "crossplay", run, run)
    other = copied("popplay", tmp_path)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"env": "matching/5-8r"}))
    assert "cross-play needs runs of one environment" in refusal(capsys, "crossplay", run, other)
    said = refusal(capsys, "eval", other, "--partners", "random")
    assert "is broken" in said
    assert "of shape" in said
    assert "should be" in said


def test_going_on_with_other_packages_is_said(capsys, tmp_path):
    run = copied("self-play", tmp_path)
    assert call(capsys, "train", "self-play", "--resume", run)[2] == ""
    config = json.loads((run / "config.json").read_text())
    config["versions"]["jax"] = "0.1"
    (run / "config.json").write_text(json.dumps(config))
    status, _, err = call(capsys, "train", "self-play", "--resume", run)
    assert status == 0
    assert "jax was 0.1, is" in err
    assert "devices = 1000" in call(capsys, "train", "self-play", "--resume", run, "--devices", "1000")[2]


def test_broken_checkpoint_is_one_line(capsys, tmp_path):
    run = copied("self-play", tmp_path)
    for file in (run / "checkpoints").rglob("d/*"):
        file.write_bytes(b"")
    for words in (["eval", run, "--partners", "random"], ["crossplay", run], ["train", "self-play", "--resume", run]):
        assert "is broken" in refusal(capsys, *words)


def test_tensorboard_needs_its_package(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    words = ["train", "self-play", "--env", ENV, "--out", tmp_path / "run", *FLAGS, "--tensorboard"]
    assert 'pip install "jaxscope[tensorboard]"' in refusal(capsys, *words)
    assert not (tmp_path / "run").exists()


def events(folder: Path) -> list:
    """All records of the TensorBoard files in `folder`: length, checksum, content, checksum."""
    read = event_pb2.Event.FromString  # pyright: ignore[reportAttributeAccessIssue]  # made when it is imported
    found = []
    for path in sorted(folder.glob("events.*")):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            found.append(read(content[12 : 12 + length]))
            content = content[16 + length :]
    return found


def test_tensorboard_files_hold_the_metrics(tmp_path):
    folder = tmp_path / "run"
    done = run_jaxscope(*train_words("self-play", folder), "--tensorboard")
    assert done.returncode == 0, done.stderr
    logged = {}
    for event in events(folder / "tensorboard"):
        for value in event.summary.value:
            logged[value.tag, event.step] = value.simple_value
    for line in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()):
        for name in ("entropy", "return"):
            tag = (f"{name}/seed_{line['seed']}", line["frames"])
            assert (tag in logged) == (name in line)
            assert name not in line or logged[tag] == pytest.approx(line[name])


def test_project_from_training_to_report(capsys, tmp_path):
    self_play, popplay = copied("self-play", tmp_path), copied("popplay", tmp_path)
    status, out, err = call(capsys, "eval", popplay, "--episodes", "4", "--json", tmp_path / "new" / "eval.json")
    assert (status, err) == (0, "")
    assert "popplay" in out
    record = json.loads((popplay / "eval.json").read_text())
    assert json.loads((tmp_path / "new" / "eval.json").read_text()) == [record]
    assert record["groups"]["training"]["partners"] == ["self-play:0", "self-play:1", "random"]
    assert record["checkpoint"] == {"iteration": 7, "frames": 280}

    status, out, err = call(
        capsys,
        "crossplay",
        self_play,
        popplay,
        "--partners",
        "random",
        "--episodes",
        "4",
        "--json",
        tmp_path / "x.json",
    )
    assert (status, err) == (0, "")
    crossplay = json.loads((tmp_path / "x.json").read_text())
    runs = [f"{folder}:{seed}" for folder in (self_play, popplay) for seed in (0, 1)]
    assert crossplay["names"] == [*runs, "random"]
    assert [len(row) for row in crossplay["matrix"]] == [5] * 5
    for row in crossplay["matrix"]:
        for value in row:
            assert 0 <= value <= 1
            assert f"{value:.2f}" in out

    status, out, err = call(capsys, "report", self_play, popplay, "--out", tmp_path / "report.html")
    assert (status, err) == (0, "")
    page = (tmp_path / "report.html").read_text()
    assert "self-play" in page
    assert "popplay" in page


def test_training_tells_where_its_run_is(tmp_path):
    done = run_jaxscope("train", "self-play", "--env", "matching/4", *FLAGS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "self-play in matching/4: runs/self-play-matching-4-0\n"
    assert "100%" in done.stderr
    assert (tmp_path / "runs" / "self-play-matching-4-0" / "config.json").exists()
