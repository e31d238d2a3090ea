"""Reading in pieces is reading at once, padding and holes change nothing, and what does not fit is not read."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llm_models import VOCABULARY, build, texts

from jaxscope.agents.llm import cache as caches
from jaxscope.agents.llm import fused, generate
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.span import HOLE

NAMES = ["llama-tied-biases", "qwen2-sliding", "qwen3", "olmo3-yarn"]
PIECE, SLOTS = 8, 40
GIVEN = texts((24, 13, 2))
#: Of each row, how many tokens it reads in each piece: together its text.
PLAN = np.asarray([[8, 0, 1], [0, 3, 0], [8, 8, 0], [3, 0, 1], [5, 2, 0]])

hidden = jax.jit(LanguageModel.hidden, static_argnums=0)
read = jax.jit(caches.read, static_argnums=0)
read_unrolled = jax.jit(caches.read_unrolled, static_argnums=0)
log_probs = jax.jit(LanguageModel.log_probs, static_argnums=0)
listen = jax.jit(generate.listen, static_argnums=0)


class Case(NamedTuple):
    model: LanguageModel
    params: Any
    weights: Any
    """Those for decoding."""
    whole: np.ndarray
    """What the head is given after each token of `GIVEN`, read at once."""


@pytest.fixture(scope="module", params=NAMES)
def case(request) -> Case:
    return of(request.param)


@functools.cache
def of(name: str) -> Case:
    model, params = build(name)
    return Case(model, params, fused.fuse(model, params), np.asarray(hidden(model, params, *GIVEN)))


def piece(starts: np.ndarray, counts: np.ndarray, size: int, padding: int = 0) -> np.ndarray:
    tokens = np.full((len(starts), size), padding, np.int32)
    for row, (start, count) in enumerate(zip(starts, counts, strict=True)):
        tokens[row, :count] = GIVEN.tokens[row, start : start + count]
    return tokens


def equal(one, other) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


def close(one, other) -> None:
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * np.abs(other).max())


def test_pieces_of_any_lengths_are_the_whole(case):
    cache, starts = caches.empty(case.model, 3, SLOTS), np.zeros(3, int)
    for counts in PLAN:
        cache, last = read(case.model, case.params, cache, piece(starts, counts, PIECE), counts)
        assert np.all(np.isfinite(last))
        starts = starts + counts
        for row in np.flatnonzero(counts):
            close(last[row], case.whole[row, starts[row] - 1])
    assert np.asarray(cache.lengths).tolist() == starts.tolist() == [24, 13, 2]
    assert int(cache.used) == PLAN.max(axis=1).sum()
    assert not cache.full
    for row, length in enumerate(GIVEN.lengths):
        positions = np.asarray(cache.positions)[row]
        assert positions[positions != HOLE].tolist() == list(range(length))


def test_token_after_token_is_the_whole(case):
    """Rows pause at different times."""
    cache, starts = caches.empty(case.model, 3, SLOTS), np.zeros(3, int)
    pauses = np.random.default_rng(0).random((SLOTS, 3)) < 0.3
    for pause in pauses:
        counts = np.where(pause | (starts >= GIVEN.lengths), 0, 1)
        cache, last = read_unrolled(case.model, case.weights, cache, piece(starts, counts, 1), counts)
        starts = starts + counts
        for row in np.flatnonzero(counts):
            close(last[row], case.whole[row, starts[row] - 1])
    assert starts.tolist() == [24, 13, 2]


def test_holes_before_a_row_begins_change_nothing(case):
    """The place of a token is its number in its own row, wherever in the cache it stands."""

    def after(holes: int):
        cache = caches.empty(case.model, 3, SLOTS)
        counts = np.asarray([0, 0, holes])
        cache, _ = read(case.model, case.params, cache, np.ones((3, PIECE), np.int32), counts)
        counts = np.asarray([8, 5, 0])
        cache, last = read(case.model, case.params, cache, piece(np.zeros(3, int), counts, PIECE), counts)
        assert int(cache.used) == holes + 8
        return np.asarray(last)[:2]

    none = after(0)
    close(none, case.whole[[0, 1], [7, 4]])
    for holes in (1, 7):
        close(after(holes), none)


@pytest.mark.parametrize("padding", [1, VOCABULARY - 1])
def test_padding_is_told_by_lengths_alone(case, padding):
    """Other ids there change no bit, whatever they mean elsewhere; a row may have no token at all."""
    lengths = np.asarray([24, 5, 0], np.int32)
    valid = np.arange(24)[None] < lengths[:, None]

    def everything(padding: int):
        tokens = np.where(valid, GIVEN.tokens, padding)
        states = np.asarray(hidden(case.model, case.params, tokens, lengths))
        assert np.all(np.isfinite(states))
        counts = np.asarray([3, 0, 8], np.int32)
        cache = caches.empty(case.model, 3, SLOTS)
        cache, last = read(case.model, case.params, cache, piece(np.zeros(3, int), counts, PIECE, padding), counts)
        assert np.all(np.isfinite(last))
        statistics = log_probs(case.model, case.params, tokens, lengths)
        return states[valid], cache, np.asarray(last)[counts > 0], statistics

    equal(everything(padding), everything(0))


def test_padding_has_no_part_in_gradients(case):
    lengths = np.asarray([24, 5, 0], np.int32)
    valid = np.arange(24)[None] < lengths[:, None]

    # The program runs only twice: it need not be fast.
    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def gradients(tokens):
        def loss(params):
            found = case.model.log_probs(params, tokens, lengths)
            return jnp.sum(found.log_prob) + jnp.sum(found.entropy)

        return jax.grad(loss)(case.params)

    one, other = (gradients(np.where(valid, GIVEN.tokens, padding)) for padding in (0, 1))
    assert all(np.all(np.isfinite(leaf)) and np.any(leaf) for leaf in jax.tree.leaves(one))
    equal(one, other)


def test_entries_beyond_a_row_are_nothing(case):
    lengths = np.asarray([24, 5, 0], np.int32)
    found = log_probs(case.model, case.params, GIVEN.tokens, lengths)
    for leaf in found:
        assert (np.asarray(leaf) != 0).sum(axis=1).tolist() == [23, 4, 0]


def test_what_does_not_fit_is_not_read(case):
    cache = caches.empty(case.model, 3, SLOTS)
    hear = functools.partial(read, case.model, case.params)
    for _ in range(4):
        # The first two rows are left with holes.
        cache, _ = hear(cache, GIVEN.tokens[:, :PIECE], np.asarray([0, 0, PIECE]))
    cache, _ = hear(cache, GIVEN.tokens[:, :PIECE], np.full(3, 6))
    assert int(cache.used) == 38
    refused, _ = hear(cache, GIVEN.tokens[:, :PIECE], np.full(3, 2))
    equal(refused, cache._replace(full=np.asarray(True)))
    # Two more slots are left, though tokens have been refused.
    step = functools.partial(read_unrolled, case.model, case.weights)
    for place in (6, 7):
        refused, last = step(refused, GIVEN.tokens[:, place : place + 1], np.ones(3, int))
        close(np.asarray(last)[:2], case.whole[:2, place])
    assert int(refused.used) == SLOTS
    assert np.asarray(refused.lengths).tolist() == [8, 8, 40]
    again, _ = step(refused, GIVEN.tokens[:, :1], np.ones(3, int))
    equal(again, refused)


def test_a_cache_can_be_filled_to_the_last_slot():
    case = of("llama-tied-biases")
    cache = caches.empty(case.model, 3, SLOTS)
    for first in (0, 0, 0, PIECE, 2 * PIECE):
        # The first row ends up with the text in the last three pieces.
        counts = np.asarray([PIECE if int(cache.used) >= 2 * PIECE else 0, 0, PIECE])
        cache, last = read(case.model, case.params, cache, GIVEN.tokens[:, first : first + PIECE], counts)
    close(last[0], case.whole[0, 23])
    assert not cache.full
    assert int(cache.used) == SLOTS


def test_listeners_hear_again_after_what_did_not_fit():
    case = of("llama-tied-biases")
    speaker = generate.begin(case.model, 3, 10)
    hear = functools.partial(listen, case.model, case.params)
    speaker = hear(speaker, GIVEN.tokens[:, :PIECE], np.full(3, PIECE))
    expected = case.model.predict(case.params, jnp.asarray(case.whole))
    close(speaker.logits[0], expected[0, 7])
    deaf = hear(speaker, GIVEN.tokens[:, :PIECE], np.full(3, PIECE))
    equal(deaf.logits, speaker.logits)
    assert deaf.cache.full
    heard = hear(deaf, GIVEN.tokens[:, 8:10], np.asarray([2, 0, 1]))
    close(heard.logits[0], expected[0, 9])
    equal(heard.logits[1], speaker.logits[1])


def test_micro_batches_of_any_size_agree():
    case = of("llama-tied-biases")
    given = texts((20, 3, 11, 20, 1, 7, 15, 2))

    def by(size: int):
        blocks = [slice(start, start + size) for start in range(0, 8, size)]
        found = [log_probs(case.model, case.params, given.tokens[b], given.lengths[b]).log_prob for b in blocks]
        return np.concatenate(found)

    whole = by(8)
    for size in (1, 2, 4):
        np.testing.assert_allclose(by(size), whole, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_kept_throughout(name):
    model, params = build(name, compute="bfloat16")
    state = jax.eval_shape(functools.partial(hidden, model), params, *GIVEN)
    assert state.dtype == jnp.bfloat16
    cache = caches.empty(model, 3, PIECE)
    counts = np.full(3, PIECE)
    after, last = jax.eval_shape(functools.partial(read, model), params, cache, GIVEN.tokens[:, :PIECE], counts)
    assert last.dtype == jnp.bfloat16
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), after) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), cache
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(after.memory)} == {jnp.dtype(jnp.bfloat16)}
    found = jax.eval_shape(functools.partial(log_probs, model), params, *GIVEN)
    assert found.log_prob.dtype == found.entropy.dtype == jnp.float32


def test_half_precision_is_close():
    case = of("qwen2-sliding")
    model = LanguageModel(case.model.config, compute="bfloat16")
    rough = log_probs(model, case.params, *GIVEN).log_prob
    exact = log_probs(case.model, case.params, *GIVEN).log_prob
    assert np.all(np.isfinite(rough))
    assert 0 < np.abs(rough - exact).max() < 0.5


def test_impossible_caches_are_refused():
    case = of("llama-tied-biases")
    with pytest.raises(ValueError, match="0 rows and 4 slots: must be at least 1"):
        caches.empty(case.model, 0, 4)
    with pytest.raises(ValueError, match="2 rows and 0 slots"):
        caches.empty(case.model, 2, 0)
    cache = caches.empty(case.model, 3, 4)
    with pytest.raises(ValueError, match="8 tokens do not fit a cache of 4 slots"):
        caches.read(case.model, case.params, cache, jnp.asarray(GIVEN.tokens[:, :PIECE]), jnp.full(3, PIECE))
