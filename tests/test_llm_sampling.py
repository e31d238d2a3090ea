"""Tokens follow the distribution that options describe, and their log-probabilities are of that distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from llm_reference import restricted
from scipy import special, stats

from jaxscope.agents.llm.sampling import Sampling, draw, inverse, restrict

ROWS, VOCABULARY = 4, 12
#: Quarters, so that many tokens tie.
LOGITS = arrays.arrays(np.float32, (ROWS, VOCABULARY), elements=st.integers(-12, 12).map(lambda n: n / 4))
SAMPLINGS = st.builds(
    Sampling,
    temperature=st.sampled_from([0.5, 1.0, 1.7]),
    top_k=st.sampled_from([None, 1, 3, 8, VOCABULARY, 50]),
    top_p=st.sampled_from([0.05, 0.5, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.03, 0.3, 1.0]),
)


def expected(logits: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Log-probabilities as transformers has them, but that tokens which tie with the last one kept are kept, too.

    There the order of a sort decides among them.
    """
    last = np.where(np.isfinite(restricted(logits, sampling)), logits, np.inf).min(axis=1)
    tempered = np.where(logits >= last[:, None], logits.astype(np.float64) / sampling.temperature, -np.inf)
    return special.log_softmax(tempered, axis=1)


def decided(logits: np.ndarray, sampling: Sampling) -> bool:
    """Whether no sum of probabilities is so near to a bound that rounding decides."""
    tempered = logits.astype(np.float64) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < VOCABULARY:
        last = np.sort(tempered, axis=1)[:, -sampling.top_k]
        tempered = np.where(tempered < last[:, None], -np.inf, tempered)
    ordered = -np.sort(-special.softmax(tempered, axis=1), axis=1)
    before = np.cumsum(ordered, axis=1)
    share = ordered / ordered[:, :1]
    near_share = np.abs(share - sampling.min_p) < 1e-5 if sampling.min_p < 1 else np.zeros(share.shape, bool)
    return not (np.any(np.abs(before - sampling.top_p) < 1e-5) and sampling.top_p < 1) and not np.any(near_share)


@settings(max_examples=40, deadline=None)
@given(LOGITS, SAMPLINGS, st.integers(0, 1000))
def test_draws_are_of_the_distribution_of_transformers(logits, sampling, seed):
    assume(decided(logits, sampling))
    theirs = expected(logits, sampling)
    kept = np.asarray(restrict(jnp.asarray(logits) / sampling.temperature, sampling))
    np.testing.assert_allclose(special.log_softmax(kept, axis=1), theirs, atol=1e-5)
    drawn = draw(jax.random.key(seed), jnp.asarray(logits), sampling)
    here = (np.arange(ROWS), np.asarray(drawn.token))
    assert np.all(np.isfinite(theirs[here]))
    np.testing.assert_allclose(drawn.log_prob, theirs[here], atol=1e-5)
    np.testing.assert_allclose(drawn.raw_log_prob, special.log_softmax(logits, axis=1)[here], atol=1e-5)


@pytest.mark.parametrize(
    "sampling",
    [Sampling(), Sampling(temperature=0.6, top_k=7), Sampling(top_p=0.8), Sampling(temperature=2.0, min_p=0.2)],
    ids=str,
)
def test_draws_follow_the_distribution(sampling):
    count = 20000
    logits = np.random.default_rng(0).normal(size=(1, 9)).astype(np.float32)
    drawn = draw(jax.random.key(1), jnp.broadcast_to(jnp.asarray(logits), (count, 9)), sampling)
    probabilities = np.exp(expected(logits, sampling)[0])
    counts = np.bincount(np.asarray(drawn.token), minlength=9)
    possible = probabilities > 0
    assert possible.sum() > 2
    assert counts.sum() == counts[possible].sum() == count
    assert stats.chisquare(counts[possible], probabilities[possible] * count).pvalue > 0.01


def test_no_token_of_probability_nought_is_drawn():
    """Not at the steps of the cumulative sums either, where their rounding decides."""
    rng = np.random.default_rng(0)
    for share in (0.3, 0.7):
        found = rng.random(600).astype(np.float32) ** 4 * (rng.random(600) < share)
        probabilities = jnp.asarray(found / found.sum())
        # The machine's own sums, and the numbers next to them.
        sums = np.asarray(jnp.cumsum(probabilities))
        steps = np.concatenate([np.nextafter(sums, np.float32(0)), sums, np.nextafter(sums, np.float32(2))])
        uniform = np.concatenate([steps[steps < 1], np.asarray([0, np.nextafter(np.float32(1), 0)], np.float32)])
        rows = jnp.broadcast_to(probabilities[None], (len(uniform), 600))
        token = np.asarray(inverse(jnp.asarray(uniform), rows))
        assert np.all(np.asarray(probabilities)[token] > 0)
        sums = np.cumsum(np.asarray(probabilities, np.float64))
        assert np.all(sums[token] >= uniform * sums[-1] - 1e-5)
        assert np.all(sums[token] - np.asarray(probabilities)[token] <= uniform * sums[-1] + 1e-5)


def test_temperature_nought_takes_the_likeliest():
    logits = jnp.asarray([[0.0, 3.0, 1.0], [2.0, -1.0, 2.0]])
    drawn = draw(jax.random.key(0), logits, Sampling(temperature=0.0))
    assert np.asarray(drawn.token).tolist() == [1, 0]
    assert np.asarray(drawn.log_prob).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(drawn.raw_log_prob, special.log_softmax(logits, axis=1)[[0, 1], [1, 0]], rtol=1e-6)


@pytest.mark.parametrize("temperature", [1e-4, 1e-30])
def test_low_temperatures_come_near_to_it(temperature):
    logits = jnp.asarray([[5000.0, -3000.0, 4999.0], [-1e9, 1e9, 0.0]])
    drawn = draw(jax.random.key(0), logits, Sampling(temperature=temperature))
    assert np.asarray(drawn.token).tolist() == [0, 1]
    np.testing.assert_allclose(drawn.log_prob, 0.0, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        ({"temperature": -1.0}, "temperature = -1.0: must be at least 0"),
        ({"temperature": float("nan")}, "temperature = nan: must be at least 0"),
        ({"top_k": 0}, "top_k = 0: must be at least 1, or none"),
        ({"top_p": 0.0}, "top_p = 0.0: must be above 0, at most 1"),
        ({"top_p": 1.5}, "top_p = 1.5: must be above 0, at most 1"),
        ({"min_p": -0.1}, "min_p = -0.1: must be from 0 to 1"),
        ({"min_p": 2.0}, "min_p = 2.0: must be from 0 to 1"),
    ],
)
def test_impossible_options_are_refused(options, saying):
    with pytest.raises(ValueError, match=saying):
        Sampling(**options)
