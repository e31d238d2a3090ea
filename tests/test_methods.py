"""Every file in `jaxscope/zsc` is a method: the contract that the run loop relies on."""

import shutil

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

from jaxscope import zsc
from jaxscope.cli import main
from jaxscope.metrics import Metrics
from jaxscope.panel import Panel
from jaxscope.placement import ENVIRONMENTS
from jaxscope.runs import RunSettings, metrics, panels, train
from jaxscope.runs import settings as run_settings
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.types import LearnedPolicy

ENV = "matching/4-8r"


def learners_of(name):
    settings = RunSettings(name, ENV, run_settings.method(name).Config(), seeds=2)
    env = settings.make_env()
    panel = Panel.scripted(env, ["random"]) if settings.module.MEETS_PARTNERS else None
    return settings, env, panel, jax.eval_shape(lambda: panels.begin(settings, env, panel))


@pytest.mark.parametrize("name", run_settings.method_names())
def test_an_iteration_gives_back_a_state_of_the_same_kind(name):
    settings, env, panel, learners = learners_of(name)
    step = lambda learner: settings.module.iteration(settings.config, env, panel.policies if panel else (), learner)  # noqa: E731
    after, told = jax.eval_shape(jax.vmap(step), learners)
    assert isinstance(told, Metrics)
    assert jax.tree.structure(after) == jax.tree.structure(learners)
    for old, new in zip(jax.tree.leaves(learners), jax.tree.leaves(after), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
    assert all(values.shape == (2,) for values in told.means.values())
    assert set(told.partners) == (set() if panel is None else {"partner_return", "partner_probability"})
    policy = settings.module.policy(settings.config, env)
    assert isinstance(policy, LearnedPolicy)
    like = jax.eval_shape(policy.init, jax.random.key(0))
    assert jax.tree.map(lambda leaf: (2, *leaf.shape), like) == jax.tree.map(lambda leaf: leaf.shape, learners.params)


@pytest.mark.parametrize("name", run_settings.method_names())
def test_the_partition_fits_the_state_and_finds_the_environments(name):
    settings, _, _, learners = learners_of(name)
    axes = settings.module.partition(learners)
    parts = jax.tree.map(lambda spec, part: (spec, jax.tree.leaves(part)), axes, learners)
    pairs = jax.tree.leaves(parts, is_leaf=lambda x: isinstance(x, tuple) and isinstance(x[0], PartitionSpec))
    spread = [leaf for spec, leaves in pairs for leaf in leaves if ENVIRONMENTS in spec]
    assert spread
    for spec, leaves in pairs:
        for leaf in leaves if ENVIRONMENTS in spec else ():
            assert leaf.shape[1 + spec.index(ENVIRONMENTS)] % settings.config.num_envs == 0


@pytest.mark.parametrize("name", run_settings.method_names())
def test_a_method_says_what_it_is(name):
    module = run_settings.method(name)
    assert len((module.__doc__ or "").splitlines()[0]) > 20
    config = module.Config()
    assert config.iterations * config.frames_per_iteration >= config.num_envs
    assert isinstance(module.MEETS_PARTNERS, bool)


#: A method that shares nothing with those of the library: no PPO, no games that go on, a state and metrics of its own.
HILL_CLIMBING = '''
"""Hill climbing in self-play: keep a random change of the weights if the return does not fall."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from jaxscope import rollout
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy
from jaxscope.metrics import EpisodeTotals, Metrics
from jaxscope.placement import ENVIRONMENTS

MEETS_PARTNERS = False


@dataclass(frozen=True)
class Config:
    tries: int = 5
    num_envs: int = 8
    frames_per_iteration: int = 64
    scale: float = 0.1

    @property
    def iterations(self):
        return self.tries


class Climber(NamedTuple):
    params: dict
    best: jax.Array
    key: jax.Array


def policy(cfg, env):
    return RecurrentPolicy.of(env, NetworkConfig(8))


def init(cfg, env, policies, population, key):
    params_key, key = jax.random.split(key)
    return Climber(policy(cfg, env).init(params_key), jnp.array(-jnp.inf), key)


def iteration(cfg, env, policies, climber):
    key, change_key, begin_key, play_key = jax.random.split(climber.key, 4)
    leaves, structure = jax.tree.flatten(climber.params)
    keys = jax.random.split(change_key, len(leaves))
    changed = [leaf + cfg.scale * jax.random.normal(k, leaf.shape) for leaf, k in zip(leaves, keys)]
    params = jax.tree.unflatten(structure, changed)
    learned = policy(cfg, env)
    play = rollout.begin_self_play(env, learned, cfg.num_envs, begin_key)
    _, _, episodes = rollout.self_play(env, learned, params, play, env.horizon, play_key)
    totals = EpisodeTotals.of(episodes.counted, episodes.team_return, episodes.length)
    score = totals.team_return / totals.count
    better = score >= climber.best
    kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), params, climber.params)
    return Climber(kept, jnp.maximum(score, climber.best), key), Metrics({"kept": 1.0 * better}, totals, {})


def partition(climber):
    return PartitionSpec()
'''


@pytest.fixture
def hill_climbing(tmp_path, monkeypatch):
    """The library with one more file in its folder of methods."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "hill_climbing.py").write_text(HILL_CLIMBING)
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "false")
    monkeypatch.setattr(zsc, "__path__", [*zsc.__path__, str(tmp_path / "more")])


def test_one_file_is_a_whole_method(hill_climbing, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--env", ENV, "--seeds", "2", "--tries", "3", "--iterations-per-call", "2", "--out", "run"]
    main(["train", "hill-climbing", *words])
    lines = metrics.read(tmp_path / "run" / "metrics.jsonl")
    assert [(line["iteration"], line["seed"]) for line in lines] == [(2, 0), (2, 1), (3, 0), (3, 1)]
    assert all({"return", "length", "kept"} <= line.keys() for line in lines)
    main(["list", "methods"])
    assert "hill-climbing" in capsys.readouterr().out
    (record,) = evaluate_runs([tmp_path / "run"], episodes=4, partners=("random",))
    assert record["checkpoint"] == {"iteration": 3, "frames": 3 * 64}
    main(["report", "run"])
    assert "hill-climbing" in (tmp_path / "run" / "report.html").read_text()

    shutil.rmtree(tmp_path / "run" / "checkpoints" / "3")
    main(["train", "hill-climbing", "--resume", "run"])
    assert metrics.read(tmp_path / "run" / "metrics.jsonl")[-1]["iteration"] == 3


def test_a_value_that_is_not_finite_stops_any_method(hill_climbing, tmp_path, monkeypatch):
    module = run_settings.method("hill-climbing")
    settings = RunSettings("hill-climbing", ENV, module.Config(tries=2), seeds=1)
    climb = module.iteration

    def overflow(cfg, env, policies, climber):
        climber, told = climb(cfg, env, policies, climber)
        return climber, told._replace(means={"energy": jnp.array(jnp.inf)})

    monkeypatch.setattr(module, "iteration", overflow)
    with pytest.raises(FloatingPointError, match="energy is not finite by iteration 2"):
        train(settings, tmp_path / "run")
