"""Evaluation: everybody with everybody from every seat, one compilation, honest summaries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxscope import make
from jaxscope.agents.actor_critic import NetworkConfig, RecurrentPolicy
from jaxscope.evaluation import Evaluation, crossplay, evaluate
from jaxscope.evaluation.intervals import t_interval
from jaxscope.evaluation.play import play_teams, record
from jaxscope.panel import Panel, join, subset
from tests.games import Clock

ENV = make("matching/4-8r")


def naming(convention, hidden=4):
    """A policy that almost surely names one convention."""
    policy = RecurrentPolicy.of(ENV, NetworkConfig(hidden))
    params = policy.init(jax.random.key(convention))
    params["actor"]["kernel"] = jnp.zeros_like(params["actor"]["kernel"])
    params["actor"]["bias"] = 30.0 * jax.nn.one_hot(convention, 4)
    return policy, params


def panel_of(conventions, hidden=4, prefix="names "):
    policy = naming(0, hidden)[0]
    params = jax.tree.map(lambda *x: jnp.stack(x), *[naming(c, hidden)[1] for c in conventions])
    return Panel.learned(policy, params, [f"{prefix}{c}" for c in conventions])


def test_members_play_themselves_in_crossplay():
    result = crossplay(ENV, panel_of([0, 1, 2]), episodes=4)
    np.testing.assert_allclose(result.matrix(), np.eye(3), atol=1e-6)
    assert result.self_play() == pytest.approx(1.0)
    assert result.cross_play() == pytest.approx(0.0)


def test_learners_meet_partners_from_every_seat():
    partners = join(panel_of([1, 3], prefix="p"), panel_of([0], hidden=3, prefix="q"), Panel.scripted(ENV, ["random"]))
    result = evaluate(ENV, panel_of([0, 1]), partners, episodes=16)
    assert result.team_return.shape == (2, 4, 2, 16)
    assert result.partners == ("p1", "p3", "q0", "random")
    by_partner = dict(zip(result.partners, result.per_partner().T, strict=True))
    np.testing.assert_allclose(by_partner["p1"], [0, 1], atol=1e-6)
    np.testing.assert_allclose(by_partner["q0"], [1, 0], atol=1e-6)
    assert ((by_partner["random"] > 0.1) & (by_partner["random"] < 0.4)).all()
    np.testing.assert_allclose(result.per_seat()[:, :3, 0], result.per_seat()[:, :3, 1], atol=1e-6)


def test_seats_reach_the_environment_as_evaluated():
    """Events are counted per seat: the learner's are its own, whichever seat it has."""
    env = Clock(horizon=3)

    def always(action, hidden):
        policy = RecurrentPolicy.of(env, NetworkConfig(hidden))
        params = policy.init(jax.random.key(0))
        params["actor"]["kernel"] = jnp.zeros_like(params["actor"]["kernel"])
        params["actor"]["bias"] = 30.0 * jax.nn.one_hot(action, 3)
        return Panel.learned(policy, jax.tree.map(lambda x: x[None], params), [f"always {action}"])

    result = evaluate(env, always(2, 4), always(1, 3), episodes=2)
    np.testing.assert_allclose(result.learner_events["acted"], 6.0)  # 3 steps of action 2
    np.testing.assert_allclose(result.partner_events["acted"], 3.0)
    np.testing.assert_allclose(result.length, 3)
    np.testing.assert_allclose(result.team_return, 3.0)


def programs() -> int:
    """Compiled versions of the one function that plays."""
    return play_teams._cache_size()  # pyright: ignore[reportAttributeAccessIssue]


def test_one_program_serves_any_number_of_partners_of_an_architecture():
    partners = panel_of([0, 1, 2, 3, 0, 1], prefix="p")
    partners = Panel(tuple(f"{i}" for i in range(6)), partners.policies, partners.population)
    before = programs()
    evaluate(ENV, panel_of([0, 1, 2]), partners, episodes=3)
    assert programs() == before + 1
    evaluate(ENV, panel_of([3, 2, 1]), partners, episodes=3, key=jax.random.key(9))
    assert programs() == before + 1


def test_the_same_key_gives_everyone_the_same_games_and_the_same_result():
    learners, partners = panel_of([0]), Panel.scripted(ENV, ["random"])
    once = evaluate(ENV, learners, partners, 4, jax.random.key(3))
    again = evaluate(ENV, learners, partners, 4, jax.random.key(3))
    np.testing.assert_array_equal(once.team_return, again.team_return)


def test_games_that_end_early_are_not_counted_on():
    env = Clock(horizon=9, shortest=2, longest=6)
    result = evaluate(env, Panel.scripted(env, ["random"]), Panel.scripted(env, ["random"]), episodes=32)
    np.testing.assert_array_equal(result.team_return, result.length)
    assert set(np.unique(result.length)) == {2, 3, 4, 5, 6}


def test_a_recorded_episode_is_whole():
    env = Clock(horizon=5)
    panel = Panel.scripted(env, ["random"])
    states, rewards, steps = record(env, panel.policies, panel.population, jnp.array([0, 0]), jax.random.key(0))
    np.testing.assert_array_equal(states.time, [0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(rewards, 1.0)
    assert int(steps) == 5


def noisy(means, episodes, seed):
    rng = np.random.default_rng(seed)
    returns = rng.normal(np.asarray(means)[None, :, None, None], 1.0, (1, len(means), 2, episodes))
    return Evaluation(("l",), tuple(map(str, range(len(means)))), returns, returns, {}, {})


def test_the_worst_partner_is_not_biased_downwards():
    """Four equal partners: a plain minimum of means lies about one standard error too low."""
    worst = [noisy([0, 0, 0, 0], 20, seed).worst()[0] for seed in range(400)]
    plain = [noisy([0, 0, 0, 0], 20, seed).per_partner().min() for seed in range(400)]
    error = np.std(worst) / np.sqrt(400)
    assert abs(np.mean(worst)) < 4 * error
    assert np.mean(plain) < -0.1
    assert noisy([0, -5, 0], 20, 0).worst()[0] == pytest.approx(-5, abs=1)


def test_the_t_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    bounds = np.array([t_interval(rng.normal(size=5))[1:] for _ in range(4000)], float)
    inside = (bounds[:, 0] <= 0) & (bounds[:, 1] >= 0)
    assert stats.binomtest(int(inside.sum()), 4000, 0.95).pvalue > 0.001


def test_one_run_bounds_nothing_and_episodes_are_not_runs():
    assert t_interval(np.array([0.5])) == (0.5, None, None)
    with pytest.raises(ValueError, match="one value per run"):
        t_interval(np.zeros((3, 50)))


def test_duplicating_episodes_leaves_the_interval_unchanged():
    runs = np.random.default_rng(1).normal(size=(5, 10))
    ten_times = np.repeat(runs, 10, axis=1)
    assert t_interval(runs.mean(axis=1)) == pytest.approx(t_interval(ten_times.mean(axis=1)))


def test_panels_keep_names_with_members():
    both = join(panel_of([0, 1]), Panel.scripted(ENV, ["random"]), panel_of([2], prefix="late "))
    assert both.names == ("names 0", "names 1", "late 2", "random")
    assert both.population.sizes == (3, 1)
    part = subset(both, [1, 3])
    assert part.names == ("names 1", "random")
    np.testing.assert_allclose(part.population.gather(jnp.array(0))["actor"]["bias"], 30.0 * np.eye(4)[1])


def test_two_members_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two members are called 'names 1'"):
        join(panel_of([0, 1]), panel_of([1]))


def test_too_few_episodes_are_refused():
    with pytest.raises(ValueError, match="at least 2"):
        evaluate(ENV, panel_of([0]), panel_of([1]), episodes=1)
    with pytest.raises(ValueError, match="at least 1"):
        crossplay(ENV, panel_of([0]), episodes=0)
