"""Actions that are arrays pass through whatever plays, records and stores games."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from jaxscope import dispatch, make
from jaxscope.envs.pmr import LANDMARKS
from jaxscope.evaluation import crossplay, evaluate
from jaxscope.evaluation.episode import Episode, first_state, named_actions, replay, step_key
from jaxscope.evaluation.play import play_teams
from jaxscope.panel import Panel
from jaxscope.runs.recording import record_gif
from jaxscope.types import View

ENVS = [make("pmr"), make("predator_prey")]
MEET = ["always-north", "random-landmark", "stay", "teammate-biased"]


def test_events_say_where_agents_have_met():
    env = make("pmr")
    panel = Panel.scripted(env, MEET)
    teams = jnp.array([[0, 3], [3, 1], [0, 0], [1, 2]])
    outcome = play_teams(env, panel.policies, panel.population, teams, 64, jax.random.key(0))
    met = np.stack([outcome.events[f"met_{name}"] for name in LANDMARKS])  # [4, C, E, A]
    np.testing.assert_array_equal(met[..., 0], met[..., 1])
    np.testing.assert_array_equal(outcome.team_return, 2 * met[..., 0].sum(0))
    where = met[..., 0].mean(-1).T  # [C, 4]
    np.testing.assert_array_equal(where[2], [0, 1, 0, 0])
    np.testing.assert_allclose(where[1], 0.25, atol=0.2)
    assert where[0, 1] > 0.9
    assert (where[3] == 0).all()


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.name)
def test_scripted_partners_are_evaluated_from_every_seat(env):
    learners, partners = Panel.scripted(env, ["teammate-biased", "stay"]), Panel.scripted(env, ["random", "stay"])
    result = evaluate(env, learners, partners, episodes=8)
    assert result.team_return.shape == (2, 2, 2, 8)
    assert result.team_return.max() > 0
    assert (result.team_return[1, 1] == 0).all()
    assert crossplay(env, learners, episodes=8).matrix().shape == (2, 2)


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.name)
def test_a_recording_shows_a_whole_episode(env, tmp_path):
    panel = Panel.scripted(env, ["stay", "teammate-biased"])
    recording = record_gif(env, panel, [1, 0], jax.random.key(3), tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as image:
        assert getattr(image, "n_frames", 1) == recording.steps + 1
    assert 1 < recording.steps <= env.horizon


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.name)
def test_a_stored_episode_is_played_again(env, tmp_path):
    rng, seed, rows, total = np.random.default_rng(0), 5, [], 0.0
    step = jax.jit(env.step_env)
    _, state = first_state(env, seed)
    for time in range(6):
        row = rng.uniform(-1, 1, (2, 2)).tolist()
        _, state, rewards, _, _ = step(step_key(seed, time), state, named_actions(env, row))
        rows.append(tuple(row))
        total += float(env.team_reward(rewards))
    Episode(env.name, seed, ("a", "b"), tuple(rows), total).save(tmp_path / "episode.json")
    again, states, rewards = replay(Episode.load(tmp_path / "episode.json"))
    assert again == env
    assert len(states) == 7
    assert rewards.sum() == pytest.approx(total)
    jax.tree.map(np.testing.assert_array_equal, states[-1], state)


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.name)
def test_partners_in_blocks_and_per_environment_act_alike(env):
    num_envs, ids = 8, jnp.array([0, 2, 1, 2])
    panel = Panel.scripted(env, ["stay", "random", "teammate-biased"])
    _, state = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), num_envs))
    view = View(jnp.zeros((1, num_envs, 1)), state, jnp.ones((1, num_envs), jnp.int32))
    keys = jax.random.split(jax.random.key(1), (1, num_envs))
    parts = dispatch.cast(panel.policies, panel.population, ids)
    memory = dispatch.initial_memory(parts, 1, num_envs)
    blocks, _ = dispatch.block_actions(panel.policies, parts, memory, view, jax.random.clone(keys))
    parts = dispatch.cast(panel.policies, panel.population, jnp.repeat(ids, 2))
    single, _ = dispatch.env_actions(panel.policies, parts, memory, view, keys)
    assert blocks.shape == (1, num_envs, 2)
    np.testing.assert_array_equal(blocks, single)
    assert (blocks[0, :2] == 0).all()
    assert (blocks[0, 2:] != 0).all()


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.name)
def test_games_run_under_jaxmarls_wrappers(env):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from jaxmarl.wrappers.baselines import LogWrapper

        from jaxscope.jaxmarl import to_jaxmarl
    wrapped = LogWrapper(to_jaxmarl(env))
    assert wrapped.action_space("agent_0").shape == (2,)
    obs, state = wrapped.reset(jax.random.key(0))
    ours, own = env.reset(jax.random.key(0))
    actions = {agent: jnp.array([0.5, -1.0]) for agent in env.agents}
    for time in range(3):
        obs, state, *_ = wrapped.step(jax.random.key(time), state, actions)
        ours, own, *_ = env.step(jax.random.key(time), own, actions)
        for agent in env.agents:
            # Compiled and not: sums may be rounded otherwise.
            np.testing.assert_allclose(obs[agent], ours[agent], atol=1e-5)
