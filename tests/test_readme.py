"""The README's code is run as it stands there, but for what would take minutes: sizes, and the number of partners."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxscope
import jaxscope.agents.partners.lbf
import jaxscope.envs
from jaxscope import registry
from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.agents.scripted import description, partner_names, role
from jaxscope.casting import Partnering
from jaxscope.envs.lbf import NORTH
from jaxscope.evaluation import evaluate
from jaxscope.make import ENVIRONMENTS
from jaxscope.panel import Panel
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, train
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.types import View
from jaxscope.zsc import popplay, self_play
from tests import test_environments, test_lbf_partners
from tests.tiny_runs import run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
TINY = PPOConfig(frames=80, num_envs=8, num_steps=5, epochs=1, minibatches=2, network=NetworkConfig(8))


# Nothing here runs long enough to earn back what an optimised program costs.
pytestmark = pytest.mark.usefixtures("quick_compilation")


def code_of(path: str) -> str:
    """The block whose first line names `path`."""
    (block,) = [block for block in CODE if block.startswith(f"# {path}\n")]
    return block


def added(path: str, package, folder: Path, monkeypatch) -> str:
    """Put the README's file of that path where `package` finds it; its module's name."""
    name = Path(path).stem
    (folder / f"{name}.py").write_text(code_of(path))
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, f"{package.__name__}.{name}", raising=False)
    importlib.invalidate_caches()
    return name


@pytest.fixture
def meet(tmp_path, monkeypatch):
    yield added("envs/meet.py", jaxscope.envs, tmp_path, monkeypatch)
    sys.modules.pop("jaxscope.envs.meet", None)


@pytest.fixture
def lightest_food(tmp_path, monkeypatch):
    package = jaxscope.agents.partners.lbf
    yield added("agents/partners/lbf/lightest_food.py", package, tmp_path, monkeypatch).replace("_", "-")
    sys.modules.pop("jaxscope.agents.partners.lbf.lightest_food", None)


def checks(module, **values):
    """The tests of `module` for one family or name, with the arguments that they ask for."""
    found = []
    for name, test in vars(module).items():
        parameters = set(inspect.signature(test).parameters) if name.startswith("test_") else set()
        if parameters & {"family", "name"} and parameters <= set(values):
            found.append((test, {parameter: values[parameter] for parameter in parameters}))
    return found


def test_there_is_a_block_for_everything():
    assert len(CODE) == 3
    assert sum(len(line) > 0 for line in code_of("envs/meet.py").splitlines()) < 60


def test_python_in_ten_lines(tmp_path):
    script = next(block for block in CODE if "jaxscope.make(" in block)
    tiny = "PPOConfig(frames=64, num_envs=16, num_steps=4, epochs=1, minibatches=2)"
    small = {
        "PPOConfig(frames=400_000)": tiny,
        "2s-8x8-2p-3f": "5x5-2p-1f?max_steps=4",
        'partners=("training",)': 'partners=("stay", "random")',  # eleven scripts take long to compile
    }
    for words, fewer in small.items():
        assert words in script
        script = script.replace(words, fewer)
    (tmp_path / "script.py").write_text(script)
    done = run([sys.executable, "script.py"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    numbers = [float(number) for number in re.findall(r"\d+\.\d*", done.stdout)]
    assert len(numbers) == 6 + 6 * 6
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"alone", "together"}


def test_environment_keeps_the_contract(meet):
    assert "meet/9" in jaxscope.list_envs()
    found = checks(test_environments, family=meet, name="meet/9")
    assert len(found) >= 5
    for test, values in found:
        test(**values)
    with pytest.raises(ValueError, match="at least 2"):
        jaxscope.make("meet/1")


def test_environment_is_the_game_it_says(meet):
    env = registry.load(ENVIRONMENTS, meet).parse("9")
    _, state = env.reset(jax.random.key(0))
    left, stay, right = 0, 1, 2
    play = jax.jit(env.step_env)

    def after(cells, first, second, time=0):
        here = state._replace(cell=np.array(cells, np.int32), time=np.int32(time))
        return play(jax.random.key(1), here, {"agent_0": np.int32(first), "agent_1": np.int32(second)})

    _, there, rewards, _, info = after([3, 4], right, left)
    assert there.cell.tolist() == [4, 3]  # past each other
    assert not info["terminated"]
    _, there, rewards, _, info = after([3, 4], stay, left, time=17)
    assert there.cell.tolist() == [3, 3]
    assert info["terminated"]
    assert not info["truncated"]
    assert rewards == {"agent_0": 1, "agent_1": 1}
    obs, there, rewards, _, info = after([0, 8], left, right, time=17)
    assert there.cell.tolist() == [0, 8]
    assert info["truncated"]
    assert rewards == {"agent_0": 0, "agent_1": 0}
    assert obs["agent_0"].tolist() == [0, 1]
    assert obs["agent_1"].tolist() == [1, 0]


def test_environment_trains_and_is_judged(meet, tmp_path):
    del meet
    folder = tmp_path / "run"
    learners = train(RunSettings("self-play", "meet/9", self_play.Config(TINY), seeds=2), folder)
    assert learners.iteration.tolist() == [2, 2]
    (record,) = evaluate_runs([folder], episodes=2, partners=("random",))
    assert np.shape(record["groups"]["chosen"]["per_seat"]) == (2, 1, 2)


def test_partner_keeps_the_contract(lightest_food):
    found = checks(test_lbf_partners, name=lightest_food, variant="2s-8x8-2p-3f")
    assert len(found) >= 2
    for test, values in found:
        test(**values)


def test_partner_is_listed_trains_and_judges(lightest_food, tmp_path, capsys):
    assert lightest_food in partner_names("lbf", "training")
    listing = registry.load("jaxscope.cli", "list")
    listing.run(listing.Options("partners", env="lbf"))
    assert description(lightest_food, "lbf") in capsys.readouterr().out

    env = jaxscope.make("lbf/5x5-2p-1f?max_steps=20")
    random = Panel.scripted(env, ["random"])
    partner = Panel.scripted(env, [lightest_food])
    assert evaluate(env, partner, partner, 10).mean() > evaluate(env, random, random, 10).mean()

    config = popplay.Config(TINY, Partnering(block_size=4))
    settings = RunSettings("popplay", env.name, config, seeds=1, partners=(lightest_food, "stay"))
    learners = train(settings, tmp_path / "run")
    assert learners.iteration.tolist() == [2]
    assert learners.population is not None
    assert learners.population.capacity == 2


def test_partner_acts_by_its_description(lightest_food):
    """Of a light food far away and a heavy one at hand it takes the light one."""
    env = jaxscope.make("lbf/8x8-2p-3f")
    policy = Panel.scripted(env, [lightest_food]).policies[0]
    _, state = env.reset(jax.random.key(0))
    state = state._replace(
        position=np.array([[4, 4], [7, 7]], np.int32),
        food_position=np.array([[1, 4], [5, 4], [-1, -1]], np.int32),
        food_level=np.array([1, 3, 0], np.int32),
    )
    view = View(env.get_obs(state)["agent_0"], state, jnp.int32(0))
    action, _ = policy.act((), policy.initial_memory(()), view, jax.random.key(1))
    assert action == NORTH


def test_every_command_is_named():
    table = re.findall(r"^\| `jaxscope (\w+)", README, re.MULTILINE)
    assert set(table) == set(registry.names("jaxscope.cli"))


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#:]+)\)|src=\"([^\":]+)\"", README)
    assert len(targets) >= 6
    for target in targets:
        assert (ROOT / "".join(target)).is_file(), target


TITLES = {
    "lbf": "Level-Based Foraging",
    "overcooked": "Overcooked",
    "pmr": "Rendezvous",
    "predator_prey": "Predator-Prey",
}


@pytest.mark.parametrize(("env", "title"), TITLES.items())
def test_table_of_partners_is_the_one_listed(env, title):
    (section,) = re.findall(rf"^## {title}\n(.*?)^## ", (ROOT / "docs" / "partners.md").read_text(), re.M | re.S)
    rows = re.findall(r"^\| `([\w-]+)` \| (\S+) \| (.+) \|$", section, re.MULTILINE)
    listed = [(name, role(name, env), description(name, env)) for name in partner_names(env)]
    assert sorted(rows) == sorted(listed)
