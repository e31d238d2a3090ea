"""Modes of policies: exact counts beside those of every population written out."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxscope
from jaxscope.agents.actor_critic import NetworkConfig
from jaxscope.envs.pmr import LANDMARKS
from jaxscope.evaluation.modes import distinct_modes, expected_distinct, modes, shares
from jaxscope.evaluation.play import play_teams
from jaxscope.ppo import PPOConfig
from jaxscope.runs import RunSettings, panels, train
from jaxscope.runs.evaluate import evaluate_runs
from jaxscope.runs.results import parse_judgement
from jaxscope.zsc import self_play

#: PopGen's table 6: percentages of self-play policies, five runs of four; east, north, west, south.
TABLE = np.array(
    [
        [0, 0, 0, 100, 35, 100, 0, 0, 0, 0, 0, 0, 85, 0, 0, 100, 0, 0, 0, 0],
        [100, 15, 0, 0, 0, 0, 75, 0, 0, 0, 100, 0, 15, 0, 30, 0, 0, 0, 0, 0],
        [0, 0, 75, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 70, 0, 100, 100, 70, 100],
        [0, 85, 25, 0, 65, 0, 25, 100, 0, 100, 0, 100, 0, 100, 0, 0, 0, 0, 30, 0],
    ]
).T


def written_out(found, n):
    """The mean over all populations, and over all ways to settle every tie."""
    ways = [[*np.flatnonzero(row)] or [None] for row in found]
    counts = [
        np.mean([len(set(chosen) - {None}) for chosen in itertools.product(*(ways[i] for i in members))])
        for members in itertools.combinations(range(len(found)), n)
    ]
    return np.mean(counts)


def test_the_populations_of_the_paper():
    found = modes(TABLE / 100)
    assert (found.sum(axis=1) == 1).all()
    runs = [distinct_modes(found[first : first + 4], 4) for first in range(0, 20, 4)]
    assert runs == pytest.approx([4, 3, 3, 3, 1])
    assert np.mean(runs) == pytest.approx(2.8)
    assert distinct_modes(found, 4) == pytest.approx(written_out(found, 4))


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6), st.data())
def test_distinct_modes_are_those_of_all_populations_written_out(rows, data):
    n = data.draw(st.integers(1, len(rows)))
    found = np.array(rows)
    assert distinct_modes(found, n) == pytest.approx(written_out(found, n))


def test_many_policies_have_as_many_modes_as_chance_says():
    found = np.tile(np.eye(4, dtype=bool), (250, 1))
    assert distinct_modes(found, 4) == pytest.approx(expected_distinct(4, 4), abs=1e-2)
    assert distinct_modes(found, 1000) == pytest.approx(4)


@pytest.mark.parametrize(("n", "k"), [(4, 4), (1, 5), (3, 2), (2, 1)])
def test_chance_is_the_mean_over_all_draws(n, k):
    draws = [len(set(drawn)) for drawn in itertools.product(range(k), repeat=n)]
    assert expected_distinct(n, k) == pytest.approx(np.mean(draws))
    assert f"{expected_distinct(4, 4):.2f}" == "2.73"


def test_ties_are_kept_and_policies_without_outcomes_have_no_mode():
    found = modes(np.array([[0.5, 0.5, 0.0], [0.1, 0.0, 0.2], [0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(found, [[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert distinct_modes(found[2:], 1) == 0
    # Both with the same tie: different with probability one half.
    assert distinct_modes(found[[0, 0]], 2) == pytest.approx(1.5)


def test_shares_are_of_all_episodes():
    happened = np.zeros((2, 3, 4), bool)
    happened[0, 1, :3] = happened[0, 2, 3] = True
    happened[1, 0, 0] = True
    np.testing.assert_array_equal(shares(happened), [[0, 0.75, 0.25], [0.25, 0, 0]])
    happened[1, 1, 0] = True
    with pytest.raises(ValueError, match="two outcomes that exclude each other"):
        shares(happened)


def test_impossible_sizes_are_refused():
    found = np.eye(3, dtype=bool)
    for n in (0, 4):
        with pytest.raises(ValueError, match=f"n = {n} must be from 1 to 3"):
            distinct_modes(found, n)
    with pytest.raises(ValueError, match="both must be at least 1"):
        expected_distinct(4, 0)


def test_an_evaluation_tells_where_every_seed_meets_itself(tmp_path):
    # Landmarks so large that policies meet by accident.
    name, folder = "pmr?horizon=20&landmark_size=0.5", tmp_path / "run"
    ppo = PPOConfig(frames=32, num_envs=4, num_steps=8, epochs=1, minibatches=1, network=NetworkConfig(4))
    train(RunSettings("self-play", name, self_play.Config(ppo), seeds=5, snapshots=0), folder)
    (record,) = evaluate_runs([folder], episodes=16, partners=["random"])
    env = jaxscope.make(name)
    assert record["modes"] == json.loads((folder / "eval-chosen.json").read_text())["modes"]
    told = parse_judgement(record).modes
    assert told is not None
    assert told.outcomes == tuple(f"met_{landmark}" for landmark in LANDMARKS)

    panel = panels.of_run(folder, env)
    teams = jnp.array([[seed, seed] for seed in range(5)])
    key = jax.random.fold_in(jax.random.key(0), 1)
    outcome = play_teams(env, panel.policies, panel.population, teams, 16, key)
    met = np.stack([outcome.events[event][..., 0].mean(axis=1) for event in told.outcomes], axis=1)
    assert met.sum() > 0
    np.testing.assert_allclose(told.shares, met, atol=1e-6)
    np.testing.assert_allclose(2 * told.shares.sum(axis=1), record["self_play"], atol=1e-5)
    most = [[told.outcomes[k] for k in np.flatnonzero(share == share.max())] if share.any() else [] for share in met]
    assert [list(mode) for mode in told.modes] == most
    assert (told.population, round(told.chance, 2)) == (4, 2.73)
    assert told.distinct == pytest.approx(distinct_modes(modes(met), 4))
