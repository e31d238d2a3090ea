"""Conversations driven from Python: the same as one pass over everything, in a bounded number of compilations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxscope.agents import llm
from jaxscope.agents.llm import session as sessions
from jaxscope.agents.llm.sampling import Sampling
from jaxscope.agents.llm.session import Session


@pytest.fixture(scope="module")
def tiny() -> llm.Pretrained:
    return llm.load("tiny")


def programs(jitted: Any) -> int:
    """How many it has been compiled into."""
    return jitted._cache_size()


def test_a_long_conversation_compiles_a_bounded_number_of_times(tiny):
    session = Session(tiny.model, tiny.params, rows=2, slots=900, sampling=Sampling(), stops=tiny.stops)
    rng, key = np.random.default_rng(0), jax.random.key(0)
    before = programs(sessions._listen), programs(sessions._speak)
    for turn in range(20):
        lengths = rng.integers(0, 40, 2)
        session.listen([rng.integers(0, 250, length).tolist() for length in lengths])
        session.speak(jax.random.fold_in(key, turn), limit=int(rng.integers(1, 6)))
    assert programs(sessions._listen) - before[0] <= len(sessions.BUCKETS)
    assert programs(sessions._speak) - before[1] <= len(sessions.BUCKETS)


def test_turns_on_one_cache_say_what_one_pass_over_everything_says(tiny):
    """Rows of different lengths, pieces longer than the largest bucket among them."""
    session = Session(tiny.model, tiny.params, rows=2, slots=1000, sampling=Sampling(0.0))
    rng = np.random.default_rng(1)
    said: list[list[int]] = [[], []]
    for lengths in ((300, 7), (0, 20), (5, 0)):
        texts = [rng.integers(0, 250, length).tolist() for length in lengths]
        session.listen(texts)
        turn = session.speak(jax.random.key(0), limit=3)
        for row, text, written in zip(said, texts, turn.tokens.tolist(), strict=True):
            row += text + written
        longest = max(map(len, said))
        tokens = jnp.asarray([row + [0] * (longest - len(row)) for row in said])
        counts = jnp.asarray([len(row) for row in said])
        statistics = tiny.model.log_probs(tiny.params, tokens, counts)
        for row, count in enumerate(counts.tolist()):
            np.testing.assert_allclose(
                statistics.log_prob[row, count - 4 : count - 1], turn.raw_log_probs[row], atol=5e-4
            )


def test_budgets_hold_row_by_row(tiny):
    session = Session(tiny.model, tiny.params, rows=3, slots=100)
    session.listen([[1], [2], [3]])
    assert session.speak(jax.random.key(0), limit=6, budgets=[0, 2, 9]).lengths.tolist() == [0, 2, 6]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.listen([[1] * 40]), "40 more tokens do not fit: 0 of 32 are taken"),
        (lambda s: s.speak(jax.random.key(0), 33), "33 more tokens do not fit"),
        (lambda s: s.listen([[1], [2]]), "2 texts for 1 conversations"),
        (lambda s: s.listen([[5, 288]]), r"tokens \[288\] are outside the model's vocabulary of 288"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(tiny, act, message):
    session = Session(tiny.model, tiny.params, slots=32)
    with pytest.raises(ValueError, match=message):
        act(session)
    assert session.used == 0


def test_a_context_beyond_the_models_is_refused(tiny):
    with pytest.raises(ValueError, match="a context of 5000 tokens does not fit: the model has 1024"):
        Session(tiny.model, tiny.params, slots=5000)
