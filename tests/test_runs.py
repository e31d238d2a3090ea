"""Run folders: settings, metrics, checkpoints, partners kept with a run, and the training loop."""

import dataclasses
import json
import math
import re
import shutil
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxscope
from jaxscope import agents, registry
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy
from jaxscope.agents.partners import random as random_partner
from jaxscope.casting import Partnering
from jaxscope.evaluation import evaluate
from jaxscope.metrics import EpisodeTotals, Metrics
from jaxscope.panel import Panel, join
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, metrics, panels, sharding, snapshots, train
from jaxscope.runs import settings as run_settings
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.zsc import popplay, self_play
from tests.tiny_runs import CALLS, ENV, ITERATIONS, SNAPSHOTS, assert_same_run, copied, finished, newest

TINY = PPOConfig(frames=280, num_envs=8, num_steps=5, minibatches=2, epochs=2, network=NetworkConfig(8))


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def settings(**changes) -> RunSettings:
    """A run of seven iterations, two a call."""
    config = popplay.Config(TINY, Partnering(block_size=4))
    plain = {"method": "popplay", "env": ENV, "config": config, "seeds": 2, "partners": ("random",)}
    return RunSettings(**plain | {"iterations_per_call": 2, "checkpoint_seconds": 0.0} | changes)


def variants(default):
    """Configs that differ from `default` in any fields, as far as they are valid."""

    def of_field(value):
        match value:
            case bool():
                return st.booleans()
            case int():
                return st.sampled_from([value, 2 * value])
            case float():
                return st.sampled_from([value, value / 3, 1e-7])
            case str():
                return st.just(value)
            case None:  # an optional whole number
                return st.sampled_from([None, 1000])
            case _:
                return variants(value)

    fields = {field.name: of_field(getattr(default, field.name)) for field in dataclasses.fields(default)}
    return st.builds(lambda **values: dataclasses.replace(default, **values), **fields)


@pytest.mark.parametrize("method", run_settings.method_names())
@given(data=st.data())
def test_settings_survive_their_file(method, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("run")
    asked = RunSettings(
        method,
        data.draw(st.sampled_from(jaxscope.list_envs())),
        data.draw(variants(run_settings.method(method).Config())),
        seeds=data.draw(st.integers(1, 1000)),
        seed=data.draw(st.integers(0, 2**32 - 1)),
        partners=tuple(data.draw(st.lists(st.text(), max_size=3))),
        checkpoint_seconds=data.draw(st.floats(0, 1e9)),
    )
    run_settings.save(asked, folder)
    assert run_settings.load(folder) == asked
    assert json.loads((folder / "config.json").read_text())["versions"].keys() >= {"jax", "python", "jaxscope"}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-20], "config.json cannot be read"),
        (lambda text: "[]", "config.json cannot be read"),
        (lambda text: re.sub('"format": [0-9]+', '"format": 99', text), "another format"),
        (lambda text: text.replace('"popplay"', '"nonsense"'), "there is no method 'nonsense'"),
        (lambda text: text.replace('"num_envs": 8', '"num_envs": 7'), "multiple"),
        (lambda text: text.replace('"num_envs": 8', '"num_envs": "many"'), "config.json cannot be read"),
        (lambda text: text.replace('"clip"', '"clap"'), "clap"),
    ],
)
def test_damaged_settings_are_one_clear_error(damage, message, tmp_path):
    run_settings.save(settings(), tmp_path)
    path = tmp_path / "config.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=message):
        run_settings.load(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        *({"seeds": 0}, {"iterations_per_call": -1}, {"devices": 0}, {"snapshots": -1}, {"seed": -1}, {"seed": 2**32}),
        *({"checkpoint_seconds": -1.0}, {"checkpoint_seconds": math.nan}),
    ],
)
def test_settings_out_of_range_are_refused(changes):
    (name,) = changes
    with pytest.raises(ValueError, match=name):
        settings(**changes)


def test_what_did_not_happen_is_absent():
    counts: list[Any] = [np.array([[0, 1], [0, 2]]), np.array([[0.0, 0.25], [0.0, 1.0]]), np.array([[0, 8], [0, 12]])]
    means: Any = {"entropy": np.array([[1.0, 2.0], [3.0, 4.0]])}
    partners: Any = {"partner_return": np.array([[[0.5, 0.5], [0.5, 0.5]], [[np.nan, 0.0], [np.nan, np.nan]]])}
    rows = Metrics(means, EpisodeTotals(*counts), partners)
    none, some = metrics.summarise(rows, 10, 400, ("a", "b"))
    assert none == {
        "iteration": 10,
        "frames": 400,
        "seed": 0,
        "episodes": 0,
        "entropy": 2.0,
        "partner_return": {"b": 0.0},
    }
    assert some["return"] == 1.25 / 3
    with pytest.raises(ValueError, match="may not be called return"):
        metrics.summarise(rows._replace(means={"return": rows.means["entropy"]}), 10, 400, ("a", "b"))
    assert some["length"] == 20 / 3
    assert some["partner_return"] == {}


def test_calls_without_an_episode_log_no_return():
    lines = metrics.read(finished("popplay") / "metrics.jsonl")
    assert len(lines) == 2 * CALLS
    # Episodes of eight steps in periods of two iterations of five: none ends in the last iteration, a call of its own.
    for line in lines:
        ended = line["iteration"] < ITERATIONS
        assert (line["episodes"] > 0) == ended
        assert ("return" in line) == ("length" in line) == ended
    # Two blocks meet two of three partners in the first period.
    for line in lines[:2]:
        assert 1 <= len(line["partner_return"]) <= 2
        assert len(line["partner_probability"]) == 3


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 30))
def test_snapshots_are_spread_over_a_run(iterations, per_call, wanted):
    ppo = PPOConfig(num_envs=8, num_steps=5, minibatches=2, frames=40 * iterations)
    asked = settings(config=self_play.Config(ppo), iterations_per_call=per_call, snapshots=wanted)
    ends = sorted({*range(0, iterations, per_call), iterations})
    taken = [end for end in ends if snapshots.due(asked, end)]
    if not wanted:
        assert not taken
        return
    assert taken[0] == 0
    assert taken[-1] == iterations
    assert len(taken) <= wanted + 1
    for number in range(wanted + 1):  # each point is followed by a snapshot within its host call
        point = number * iterations / wanted
        assert any(point <= at < point + per_call for at in taken)


def test_torn_last_line_is_left_out_and_cut_away(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"iteration": 2}\n{"iteration": 4}\n{"iter')
    assert metrics.read(path) == [{"iteration": 2}, {"iteration": 4}]
    log = metrics.MetricsLog(path, resume_at=2)
    log.write([{"iteration": 4, "seed": 1}])
    log.close()
    assert path.read_text() == '{"iteration": 2}\n{"iteration": 4, "seed": 1}\n'


@pytest.mark.parametrize("line", ["{", "5", "[]", "{}", '{"iteration": "2"}'])
def test_other_damage_to_metrics_is_an_error_with_its_line(line, tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{{"iteration": 1}}\n{line}\n{{"iteration": 2}}\n')
    with pytest.raises(ValueError, match="line 2"):
        metrics.read(path)


def test_folders_that_are_no_runs_are_told_apart(tmp_path):
    with pytest.raises(ValueError, match="it has no config"):
        panels.of_run(tmp_path / "nothing")
    folder = copied("self-play", tmp_path)
    for checkpoint in (folder / "checkpoints").iterdir():
        checkpoint.rename(tmp_path / f"moved-{checkpoint.name}")
    with pytest.raises(ValueError, match="holds no complete checkpoint"):
        panels.of_run(folder)
    with pytest.raises(ValueError, match="holds no complete checkpoint"):
        panels.newest_iteration(folder)
    damaged = copied("popplay", tmp_path)
    (damaged / "population" / "members.json").unlink()
    with pytest.raises(ValueError, match="no readable population"):
        panels.of_run(damaged)


def test_panel_of_all_kinds_survives_its_file(tmp_path):
    env = jaxscope.make(ENV)
    networks = NetworkConfig(4), NetworkConfig(4, memory="none")
    small, blunt = (RecurrentPolicy.of(env, network) for network in networks)

    def learned(policy, names, seed):
        keys = jax.random.split(jax.random.key(seed), len(names))
        return Panel.learned(policy, jax.vmap(policy.init)(keys), names)

    panel = join(
        learned(small, ["s:0", "s:1"], 0),
        Panel.scripted(env, ["random"]),
        learned(blunt, ["b:0"], 1),
        learned(small, ["t:0"], 2),
    )
    panels.save(panel, tmp_path / "population")
    again = panels.load(tmp_path / "population", env)
    assert again.names == panel.names == ("s:0", "s:1", "t:0", "random", "b:0")
    assert again.policies == panel.policies
    assert again.population.sizes == panel.population.sizes == (3, 1, 1)
    jax.tree.map(np.testing.assert_array_equal, again.population, panel.population)


def test_members_of_an_earlier_run_are_partners():
    env = jaxscope.make(ENV)
    own = panels.of_run(finished("self-play"), env)
    met = panels.load(finished("popplay") / "population", env)
    assert met.names == (*own.names, "random")
    assert own.names == ("self-play:0", "self-play:1")
    jax.tree.map(np.testing.assert_array_equal, met.population.members[0], own.population.members[0])
    _, leaves = newest(finished("popplay"))
    kept = {name for name in leaves if ".population.members" in name}
    assert kept
    for name in kept:  # frozen: still the partners that the run began with, for every seed
        assert leaves[name].shape[:2] == (2, 2)


def test_partners_as_asked_for(tmp_path, monkeypatch):
    env = jaxscope.make(ENV)
    monkeypatch.chdir(finished("self-play"))
    assert panels.resolve(["."], env).names == ("self-play:0", "self-play:1")
    lbf = jaxscope.make("lbf/8x8-2p-3f")
    assert panels.resolve(["closest_food"], lbf).names == ("closest-food",)
    assert set(panels.resolve(["held-out"], lbf).names) == set(jaxscope.list_partners("lbf", "held-out"))
    for names, message in [
        ([], "no partners were named"),
        (["training"], "has no training partners"),
        (["nobody"], "has no scripted partner 'nobody'"),
        (["nowhere/run"], "is not a run"),
        (["random", "random"], "two members are called 'random'"),
    ]:
        with pytest.raises(ValueError, match=message):
            panels.resolve(names, env)
    with pytest.raises(ValueError, match="whose spaces differ"):
        panels.resolve([str(finished("self-play"))], lbf)


def test_partners_are_listed_by_environment_or_family():
    in_family = jaxscope.list_partners("lbf")
    assert {"random", "closest-food"} <= set(in_family)
    assert jaxscope.list_partners("lbf/8x8-2p-3f?penalty=0.1") == in_family
    assert jaxscope.list_partners("jaxmarl:MPE_simple_spread_v3") == jaxscope.list_partners("matching/4")
    for wrong in ("lbv", "lbv/8x8-2p-3f", ""):
        with pytest.raises(ValueError, match="there is no environment"):
            jaxscope.list_partners(wrong)
    with pytest.raises(ValueError, match="no partner role 'trainin'"):
        jaxscope.list_partners("lbf", "trainin")


#: A kind of policy that the library does not know: it names a fixed convention, its only weight.
FIXED = """
from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Fixed:
    count: int

    def init(self, key):
        return {"choice": jax.random.randint(key, (), 0, self.count)}

    def describe(self):
        return {"count": self.count}

    def initial_memory(self, params):
        return ()

    def act(self, params, memory, view, key):
        return params["choice"], memory


def restore(env, description):
    return Fixed(**description)
"""


def test_policies_of_any_kind_are_kept_with_a_run(tmp_path, monkeypatch):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "fixed_choice.py").write_text(FIXED)
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(tmp_path / "agents")])
    policy = registry.load("jaxscope.agents", "fixed_choice").Fixed(4)
    env = jaxscope.make(ENV)
    fixed = Panel.learned(policy, {"choice": np.array([2, 3], np.int32)}, ["two", "three"])
    panels.save(join(fixed, Panel.scripted(env, ["random"])), tmp_path / "population")
    again = panels.load(tmp_path / "population", env)
    assert again.names == ("two", "three", "random")
    assert again.policies[0] == policy
    np.testing.assert_array_equal(again.population.members[0]["choice"], [2, 3])
    result = evaluate(env, fixed, again, 2)
    np.testing.assert_array_equal(result.per_partner()[:, :2], np.eye(2))


def test_a_policy_that_could_not_be_restored_is_refused_at_once(tmp_path, monkeypatch):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "lost_choice.py").write_text(FIXED.replace("def restore", "def other"))
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(tmp_path / "agents")])
    policy = registry.load("jaxscope.agents", "lost_choice").Fixed(4)
    with pytest.raises(ValueError, match="function restore"):
        panels.save(Panel.learned(policy, {"choice": np.array([2])}, ["two"]), tmp_path / "population")
    assert not (tmp_path / "population").exists()


def test_evaluation_tells_partners_of_the_same_name_apart(tmp_path):
    """Two runs met partners called `self-play:0` that are not the same."""
    folders = [copied("popplay", tmp_path / "a"), copied("popplay", tmp_path / "b")]
    env = jaxscope.make(ENV)
    panel = panels.load(folders[0] / "population", env)
    one, other = panel.population.members[0], jax.tree.map(lambda leaf: 0 * leaf, panel.population.members[0])
    for folder, members in zip(folders, (one, other), strict=True):
        changed = join(Panel.learned(panel.policies[0], members, panel.names[:2]), Panel.scripted(env, ["random"]))
        panels.save(changed, folder / "new")
        (folder / "population").rename(folder / "old")
        (folder / "new").rename(folder / "population")
    together = evaluate_runs(folders, episodes=8)
    alone = [evaluate_runs([folder], episodes=8)[0] for folder in folders]
    for record, single in zip(together, alone, strict=True):
        assert record["groups"]["training"]["partners"] == ["self-play:0", "self-play:1", "random"]
        assert record["groups"]["training"]["per_seat"] == single["groups"]["training"]["per_seat"]
        assert json.loads((folders[0] / "eval.json").read_text())["format"] == 1


def test_the_curve_of_a_run_is_that_of_its_snapshots(tmp_path, monkeypatch):
    monkeypatch.setattr(random_partner, "ROLE", "held-out")
    folder = copied("self-play", tmp_path)
    (record,) = evaluate_runs([folder], episodes=4)
    curve = record["curve"]
    assert curve["frames"] == [iteration * TINY.frames_per_iteration for iteration in SNAPSHOTS]
    assert curve["mean"][-1] == record["groups"]["held-out"]["mean"]
    env, key = jaxscope.make(ENV), jax.random.fold_in(jax.random.key(0), 1)
    early = panels.snapshots_of_run(folder, env)[SNAPSHOTS[2]]
    alone = evaluate(env, early, Panel.scripted(env, ["random"]), 4, key)
    np.testing.assert_allclose(curve["mean"][2], alone.mean(), atol=1e-6)
    logged = {(line["iteration"], line["seed"]): line.get("return") for line in metrics.read(folder / "metrics.jsonl")}
    assert curve["training_return"] == [[logged.get((at, seed)) for seed in range(2)] for at in SNAPSHOTS]
    assert curve["training_return"][0] == [None, None]


@pytest.fixture
def compiled():
    """Names of the functions compiled so far."""
    names = []

    def listener(event: str, duration_secs: float, **kwargs: str | int) -> None:
        del duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(kwargs.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listener)
    yield names
    jax.monitoring.unregister_event_duration_listener(listener)


@pytest.mark.parametrize(("seeds", "devices"), [(2, 1), (2, 2), (1, 2)])
def test_training_compiles_one_block_and_resumes_on_any_number_of_devices(seeds, devices, tmp_path, compiled):
    asked = settings(seeds=seeds, devices=devices)
    seen = []
    train(asked, tmp_path / "whole", seen.append)
    assert sum("block" in str(name) for name in compiled) == 1  # the last call is shorter
    assert [(p.iteration, len(p.lines)) for p in seen] == [(0, 0), (2, seeds), (4, seeds), (6, seeds), (7, seeds)]
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    shutil.rmtree(tmp_path / "stopped" / "checkpoints" / str(ITERATIONS))
    compiled.clear()
    again = train(asked, tmp_path / "stopped", resume=True)
    assert sum("block" in str(name) for name in compiled) == 1
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
    assert len(again.iteration.sharding.device_set) == devices


def test_a_run_goes_on_with_another_number_of_devices(tmp_path):
    whole = train(settings(devices=2), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / str(ITERATIONS))
    again = train(settings(devices=1), tmp_path / "run", resume=True)
    assert len(again.iteration.sharding.device_set) == 1
    for a, b in zip(jax.tree.leaves(whole.params), jax.tree.leaves(again.params), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    with pytest.raises(ValueError, match="other settings"):
        train(settings(devices=1, seed=3), tmp_path / "run", resume=True)


def test_devices_must_divide_something():
    env = jaxscope.make(ENV)
    learners = jax.eval_shape(lambda: panels.begin(settings(), env, Panel.scripted(env, ["random"])))
    assert sharding.shard(learners, popplay.partition, 1) is learners
    with pytest.raises(ValueError, match="devices = 3 divides neither seeds = 2 nor num_envs = 8"):
        sharding.shard(learners, popplay.partition, 3)
    with pytest.raises(ValueError, match="devices = 1000: this machine has"):
        sharding.shard(learners, popplay.partition, 1000)


def test_diverged_training_stops_and_keeps_what_was_before(tmp_path):
    config = self_play.Config(dataclasses.replace(TINY, learning_rate=1e30, anneal=False))
    asked = settings(method="self-play", config=config, partners=(), seeds=1, iterations_per_call=1)
    with pytest.raises(FloatingPointError, match="training diverged"):
        train(asked, tmp_path / "run")
    lines = metrics.read(tmp_path / "run" / "metrics.jsonl")
    assert all(math.isfinite(line["policy_loss"]) for line in lines)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env": "nowhere/1"}, "there is no environment"),
        ({"partners": ()}, "no partners were named"),
        ({"config": popplay.Config(TINY, Partnering(block_size=3))}, "block_size = 3"),
        ({"devices": 3}, "devices = 3 divides neither"),
        ({"method": "self-play", "config": self_play.Config(TINY)}, "meets no partners, but was given random"),
    ],
)
def test_settings_that_do_not_fit_write_nothing(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(settings(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_is_not_written_to(tmp_path):
    folder = copied("popplay", tmp_path)
    own = run_settings.load(folder)
    with pytest.raises(ValueError, match="holds a run already"):
        train(own, folder)
    with pytest.raises(ValueError, match="other settings"):
        train(dataclasses.replace(own, seed=1), folder, resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    for resume in (False, True):
        with pytest.raises(ValueError, match="is not empty and holds no run"):
            train(own, tmp_path / "other", resume=resume)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.tex"]
