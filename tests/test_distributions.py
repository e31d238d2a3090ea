"""Densities, entropies and samples of action distributions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from jaxscope.agents.distributions import Categorical, SquashedGaussian

CASES = [(0.0, 0.0, -1.0, 1.0), (1.5, -1.0, -1.0, 1.0), (-0.7, 0.8, 0.0, 4.0), (0.2, -2.0, -3.0, -1.0)]


def squashed(mean, log_std, low, high):
    return SquashedGaussian(jnp.array([mean]), jnp.array([log_std]), low, high)


@pytest.mark.parametrize("case", CASES)
def test_the_squashed_density_integrates_to_the_probability(case):
    """Over bins that are even before squashing: evenly spaced actions would miss what piles up at the bounds."""
    mean, log_std, low, high = case
    latent = np.linspace(-4.5, 4.5, 20_001)
    grid = 0.5 * (low + high) + 0.5 * (high - low) * np.tanh(latent)
    distribution = squashed(*case)
    density = np.exp(jax.vmap(lambda x: distribution.log_prob(x[None]))(jnp.asarray(grid, jnp.float32)))
    for first, last in ((-4.5, 4.5), (-4.5, 0.0), (0.5, 2.0)):
        part = (first - 1e-9 <= latent) & (latent <= last + 1e-9)
        exact = np.diff(stats.norm.cdf([first, last], mean, np.exp(log_std)))[0]
        assert integrate.trapezoid(density[part], grid[part]) == pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize("case", CASES)
def test_squashed_samples_follow_the_density(case):
    mean, log_std, low, high = case
    distribution = squashed(*case)
    values = jax.vmap(distribution.sample)(jax.random.split(jax.random.key(0), 20_000))[:, 0]
    assert ((values > low) & (values < high)).all()
    latent = np.arctanh((np.asarray(values, float) - 0.5 * (low + high)) / (0.5 * (high - low)))
    assert stats.kstest(latent, stats.norm(mean, np.exp(log_std)).cdf).pvalue > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_the_squashed_entropy_is_the_mean_of_minus_the_log_density(case):
    distribution = squashed(*case)
    values = jax.vmap(distribution.sample)(jax.random.split(jax.random.key(1), 40_000))
    information = -np.asarray(jax.vmap(distribution.log_prob)(values))
    error = information.std() / np.sqrt(information.size)
    assert float(distribution.entropy()) == pytest.approx(information.mean(), abs=4 * error + 2e-3)
    assert distribution.entropy() <= np.log(case[3] - case[2]) + 1e-3


def test_vectors_add_up_over_their_last_axis():
    both = SquashedGaussian(jnp.array([0.1, -0.4]), jnp.array([0.0, -1.0]), -1.0, 1.0)
    parts = [SquashedGaussian(both.mean[i : i + 1], both.log_std[i : i + 1], -1.0, 1.0) for i in range(2)]
    value = jnp.array([0.3, -0.9])
    alone = [float(part.log_prob(value[i : i + 1])) for i, part in enumerate(parts)]
    assert float(both.log_prob(value)) == pytest.approx(sum(alone), rel=1e-5)
    assert float(both.entropy()) == pytest.approx(sum(float(part.entropy()) for part in parts), rel=1e-5)


def test_gradients_are_finite_at_the_bounds():
    def total(mean):
        distribution = SquashedGaussian(mean, jnp.zeros(2), -1.0, 1.0)
        return distribution.log_prob(jnp.array([1.0, -1.0])) + distribution.entropy()

    for mean in (0.0, 9.0, -30.0):
        assert jnp.isfinite(jax.grad(total)(jnp.full(2, mean))).all()


def test_the_categorical_agrees_with_its_probabilities():
    distribution = Categorical(jnp.array([0.5, -1.0, 2.0]))
    p = np.exp([float(distribution.log_prob(jnp.int32(value))) for value in range(3)])
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    assert float(distribution.entropy()) == pytest.approx(-(p * np.log(p)).sum(), rel=1e-5)
    draws = jax.vmap(distribution.sample)(jax.random.split(jax.random.key(0), 5000))
    assert stats.chisquare(np.bincount(draws, minlength=3), 5000 * p / p.sum()).pvalue > 1e-3
