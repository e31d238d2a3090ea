"""Advantages against plain NumPy loops, with true ends and time limits mixed."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxscope.returns import gae


def textbook_gae(reward, value, next_value, terminated, truncated, gamma, lam):
    advantage = np.zeros_like(reward)
    for column in range(reward.shape[1]):
        after = 0.0
        for t in reversed(range(reward.shape[0])):
            follows = 0.0 if terminated[t, column] else next_value[t, column]
            delta = reward[t, column] + gamma * follows - value[t, column]
            ends = terminated[t, column] or truncated[t, column]
            after = delta + (0.0 if ends else gamma * lam * after)
            advantage[t, column] = after
    return advantage


@given(st.integers(1, 12), st.integers(0, 2**31 - 1), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_gae_equals_the_textbook_loop(steps, seed, gamma, lam):
    rng = np.random.default_rng(seed)
    reward, value, next_value = rng.normal(size=(3, steps, 3)).astype(np.float32)
    terminated, truncated = rng.random((2, steps, 3)) < 0.3
    arrays = (jnp.asarray(x) for x in (reward, value, next_value, terminated, truncated))
    got = gae(*arrays, gamma=gamma, gae_lambda=lam)
    want = textbook_gae(reward, value, next_value, terminated, truncated, gamma, lam)
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_a_time_limit_is_bootstrapped_and_an_end_is_not():
    one = jnp.ones((1, 1))
    false = jnp.zeros((1, 1), bool)
    cut = gae(one, 0 * one, 10 * one, false, ~false, 0.9, 1.0)
    ended = gae(one, 0 * one, 10 * one, ~false, false, 0.9, 1.0)
    np.testing.assert_allclose(cut, 10.0)
    np.testing.assert_allclose(ended, 1.0)
