"""The stacked population: push, gather, sampling laws and running returns."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxscope.population import Population, inverse_law, rank_law, systematic

member = lambda value: {"w": jnp.full((2,), value, jnp.float32), "b": jnp.asarray(value, jnp.float32)}  # noqa: E731


def test_fifo_push_overwrites_the_oldest_and_counts_ages_inside_jit():
    push = jax.jit(lambda population, value: population.push(member(value)))
    population = Population.create(member(0), 3)
    for value in range(1, 5):
        population = push(population, value)
    np.testing.assert_array_equal(population.members[0]["w"][:, 0], [4, 2, 3])
    np.testing.assert_array_equal(population.age, [0, 2, 1])
    assert population.filled.all()
    assert int(population.cursor) == 1


def test_only_filled_slots_are_sampled():
    population = Population.create(member(0), 4).push(member(1)).push(member(2))
    uniform = population.sample(jax.random.key(0), 64)
    ranked = population.sample_ranked(jax.random.key(1), 64)
    assert set(np.asarray(uniform)) == {0, 1}
    assert set(np.asarray(ranked)) == {0, 1}


def test_a_pushed_member_starts_with_fresh_statistics():
    population = Population.stack([member(1), member(2)])
    population = population.record(jnp.array([0, 1]), jnp.array([5.0, 7.0]), jnp.array([True, True]))
    population = population.push(member(3))
    np.testing.assert_array_equal(population.mean_return, [0, 7])
    np.testing.assert_array_equal(population.episodes, [0, 1])


def test_gather_gives_the_members_asked_for_and_clips_other_kinds():
    both = Population.join(
        Population.stack([member(1), member(2)]), Population.stacked((), 1), Population.stacked((), 1)
    )
    ids = jnp.array([1, 0, 3])
    np.testing.assert_array_equal(both.gather(ids, 0)["b"], [2, 1, 2])
    np.testing.assert_array_equal(both.kind(ids), [0, 0, 2])
    assert both.gather(ids, 1) == ()
    assert both.capacity == 4


def test_a_mixed_population_cannot_be_pushed_to():
    both = Population.join(Population.stack([member(1)]), Population.stacked((), 1))
    with pytest.raises(ValueError, match="one kind"):
        both.push(member(2))


@pytest.mark.parametrize(
    ("returns", "ties", "law"),
    [
        ((3, 1, 2, 0), "average", (0.1, 0.3, 0.2, 0.4)),
        ((3, 1, 2, 0), "dense", (0.1, 0.3, 0.2, 0.4)),
        ((0, 0, 0, 5), "dense", (2 / 7, 2 / 7, 2 / 7, 1 / 7)),
        ((0, 0, 0, 5), "average", (0.3, 0.3, 0.3, 0.1)),
        ((0, 0, 5, 5), "dense", (1 / 3, 1 / 3, 1 / 6, 1 / 6)),
        ((0, 0, 5, 5), "average", (0.35, 0.35, 0.15, 0.15)),
        ((2, 2, 2), "average", (1 / 3, 1 / 3, 1 / 3)),
        ((2, 2, 2), "dense", (1 / 3, 1 / 3, 1 / 3)),
        ((-1, -3), "average", (1 / 3, 2 / 3)),
        ((0.0, -0.0), "average", (0.5, 0.5)),
        ((7,), "average", (1.0,)),
    ],
)
def test_rank_law_golden_rows(returns, ties, law):
    np.testing.assert_allclose(rank_law(jnp.array(returns, float), ties=ties), law, atol=1e-6)


def test_rank_law_beta():
    returns = jnp.array([3.0, 1.0, 2.0, 0.0])
    np.testing.assert_allclose(rank_law(returns, beta=0.0), [0.25] * 4)
    np.testing.assert_allclose(rank_law(returns, beta=2.0), np.array([1, 9, 4, 16]) / 30, rtol=1e-6)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.randoms(), st.sampled_from(["average", "dense"]))
@settings(max_examples=60, deadline=None)
def test_rank_law_is_a_law_that_permutes_with_its_members(returns, random, ties):
    order = list(range(len(returns)))
    random.shuffle(order)
    returns = np.array(returns, np.float32)
    law = np.asarray(rank_law(jnp.asarray(returns), ties=ties))
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1, abs=1e-5)
    assert law.max() <= 2 / (len(returns) + 1) + 1e-6 or ties == "dense"
    np.testing.assert_allclose(rank_law(jnp.asarray(returns[order]), ties=ties), law[order], atol=1e-6)
    for better, worse in zip(np.argsort(-returns)[:-1], np.argsort(-returns)[1:], strict=True):
        assert law[better] <= law[worse] + 1e-6


def test_members_never_met_count_as_the_worst():
    population = Population.stack([member(i) for i in range(3)])
    population = population.record(jnp.array([0, 1]), jnp.array([-9.0, 1.0]), jnp.array([True, True]))
    np.testing.assert_allclose(population.ranked_probabilities(), [2 / 6, 1 / 6, 3 / 6], rtol=1e-6)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.integers(1, 40), st.integers(0, 2**31 - 1))
@settings(max_examples=60, deadline=None)
def test_systematic_counts_are_within_one_of_their_expectation(weights, n, seed):
    law = np.asarray(weights, np.float32) / np.sum(weights, dtype=np.float32)
    ids = np.asarray(systematic(jax.random.key(seed), jnp.asarray(law), n))
    counts = np.bincount(ids, minlength=law.size)
    assert counts.sum() == n
    assert (np.abs(counts - n * law) <= 1 + 1e-3).all()


def test_every_single_draw_of_systematic_sampling_has_the_law():
    law = jnp.array([0.1, 0.2, 0.3, 0.4])
    first = jax.vmap(lambda key: systematic(key, law, 3)[0])(jax.random.split(jax.random.key(3), 10_000))
    counts = np.bincount(np.asarray(first), minlength=4)
    assert stats.chisquare(counts, 10_000 * np.asarray(law)).pvalue > 0.001


def test_inverse_law_never_hits_an_impossible_member():
    law = jnp.array([0.0, 0.5, 0.0, 0.5, 0.0])
    ids = inverse_law(law, jnp.array([0.0, 0.4999, 0.5, 0.9999999, 1.0]))
    np.testing.assert_array_equal(ids, [1, 1, 3, 3, 3])


def test_two_episodes_of_one_partner_both_count_and_others_keep_their_mean():
    population = Population.stack([member(i) for i in range(3)])
    population = population.record(jnp.array([1]), jnp.array([4.0]), jnp.array([True]))
    ids, returns = jnp.array([0, 0, 2, 1]), jnp.array([1.0, 3.0, 9.0, 99.0])
    population = population.record(ids, returns, jnp.array([True, True, True, False]))
    np.testing.assert_allclose(population.mean_return, [2, 4, 9])
    np.testing.assert_array_equal(population.episodes, [2, 1, 1])


def test_returns_can_be_smoothed():
    population = Population.stack([member(0)])
    once = population.record(jnp.array([0]), jnp.array([4.0]), jnp.array([True]), decay=0.75)
    twice = once.record(jnp.array([0]), jnp.array([0.0]), jnp.array([True]), decay=0.75)
    assert float(once.mean_return[0]) == 4.0
    assert float(twice.mean_return[0]) == 3.0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5), st.booleans()), min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_running_returns_equal_a_dictionary_of_lists(rows):
    population = Population.stack([member(i) for i in range(4)])
    ids, returns, finished = (np.array(column) for column in zip(*rows, strict=True))
    got = population.record(jnp.asarray(ids), jnp.asarray(returns, jnp.float32), jnp.asarray(finished))
    seen = Counter(ids[finished].tolist())
    for k in range(4):
        assert int(got.episodes[k]) == seen[k]
        mean = returns[finished & (ids == k)].mean() if seen[k] else 0.0
        assert float(got.mean_return[k]) == pytest.approx(mean, abs=1e-5)


@pytest.mark.parametrize("make", [lambda: Population.create(member(0), 0), lambda: Population.stack([])])
def test_empty_populations_are_refused(make):
    with pytest.raises(ValueError, match=r"at least (1|one)"):
        make()
