"""Turns of conversations: what is recorded of them is what the model computes, and they end where they should."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llm_models import VOCABULARY, Texts, build, texts
from scipy import special

from jaxscope.agents.llm import fused, generate
from jaxscope.agents.llm.generate import Speaker, Turn
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling, restrict

ROWS, SLOTS, LIMIT = 8, 64, 12
PLAIN, CUT = Sampling(temperature=0.7), Sampling(temperature=1.3, top_k=20, top_p=0.95)
#: Among them the id that fills what is empty.
STOPS = (0, 7, 20)
GIVEN = texts((16, 3, 9, 16, 1, 5, 2, 7))
ALL = np.full(ROWS, LIMIT, np.int32)

logits = jax.jit(LanguageModel.logits, static_argnums=0)
log_probs = jax.jit(LanguageModel.log_probs, static_argnums=0)
listen = jax.jit(generate.listen, static_argnums=0)
speak = jax.jit(generate.speak, static_argnums=(0, 4, 5, 6))


class Case(NamedTuple):
    model: LanguageModel
    params: Any
    weights: Any
    heard: Speaker
    """Has read `GIVEN`."""

    def speak(self, seed: int, sampling: Sampling = PLAIN, budgets: np.ndarray = ALL, heard: Speaker | None = None):
        """A turn that ends with any of `STOPS`."""
        heard = heard or self.heard
        speaker, turn = speak(
            self.model, self.weights, heard, jax.random.key(seed), sampling, STOPS, LIMIT, jnp.asarray(budgets)
        )
        return speaker, jax.tree.map(np.asarray, turn)


@pytest.fixture(scope="module", params=["llama-tied-biases", "olmo3-yarn"])
def case(request) -> Case:
    return of(request.param)


@functools.cache
def of(name: str) -> Case:
    model, params = build(name)
    heard = listen(model, params, generate.begin(model, ROWS, SLOTS), *GIVEN)
    return Case(model, params, fused.fuse(model, params), heard)


def followed(tokens: np.ndarray, lengths: np.ndarray, turn: Turn | Texts) -> tuple[np.ndarray, np.ndarray]:
    """Rows of texts, each with what was said after it."""
    both = np.zeros((len(tokens), tokens.shape[1] + turn.tokens.shape[1]), np.int32)
    for row, (length, more) in enumerate(zip(lengths, turn.lengths, strict=True)):
        both[row, :length] = tokens[row, :length]
        both[row, length : length + more] = turn.tokens[row, :more]
    return both, lengths + turn.lengths


def written(values: np.ndarray, turn: Turn) -> np.ndarray:
    """Of values of all tokens but the first, those of the turn's tokens, at the places that they have in the turn."""
    found = np.zeros(turn.tokens.shape, np.float32)
    for row, (length, more) in enumerate(zip(GIVEN.lengths, turn.lengths, strict=True)):
        found[row, :more] = np.asarray(values)[row, length - 1 : length - 1 + more]
    return found


def test_recorded_log_probs_are_those_of_training(case):
    _, turn = case.speak(seed=0)
    both = followed(*GIVEN, turn)
    tempered = log_probs(case.model, case.params, *both, temperature=0.7).log_prob
    np.testing.assert_allclose(turn.log_probs, written(tempered, turn), atol=5e-4)
    np.testing.assert_allclose(
        turn.raw_log_probs, written(log_probs(case.model, case.params, *both).log_prob, turn), atol=5e-4
    )
    assert turn.lengths.sum() > 3 * ROWS


def test_recorded_log_probs_of_a_distribution_that_was_cut():
    """Those of the model, which can be trained, are recorded beside those of the distribution that was drawn from."""
    case = of("llama-tied-biases")
    _, turn = case.speak(seed=1, sampling=CUT)
    both = followed(*GIVEN, turn)
    tokens = np.take_along_axis
    found = np.asarray(logits(case.model, case.params, *both))[:, :-1]
    kept = np.asarray(restrict(jnp.asarray(found / 1.3).reshape(-1, VOCABULARY), CUT)).reshape(found.shape)
    drawn = tokens(special.log_softmax(kept, axis=-1), both[0][:, 1:, None], axis=-1)[..., 0]
    np.testing.assert_allclose(turn.log_probs, written(drawn, turn), atol=5e-4)
    raw = written(log_probs(case.model, case.params, *both).log_prob, turn)
    np.testing.assert_allclose(turn.raw_log_probs, raw, atol=5e-4)
    assert np.abs(turn.raw_log_probs - turn.log_probs).max() > 0.1


def test_turns_end_with_the_first_stop(case):
    _, turn = case.speak(seed=2)
    for row in range(ROWS):
        length = turn.lengths[row]
        stops = np.isin(turn.tokens[row, :length], STOPS)
        assert not stops[:-1].any()
        assert stops[-1] == turn.stopped[row]
        assert turn.stopped[row] or length == LIMIT
        # Entries beyond are 0, an id that is a stop elsewhere.
        assert not turn.tokens[row, length:].any()
        assert not turn.log_probs[row, length:].any()
        assert not turn.raw_log_probs[row, length:].any()
    assert 0 < turn.stopped.sum() < ROWS
    assert np.all(turn.log_probs <= 0)


def test_stops_are_trained():
    """Their gradients are not zero, though the id of one also fills what is empty."""
    case = of("llama-tied-biases")
    turn = next(
        turn
        for seed in range(20)
        for _, turn in [case.speak(seed)]
        if np.any(turn.stopped & (turn.tokens[np.arange(ROWS), turn.lengths - 1] == 0))
    )
    both, lengths = followed(*GIVEN, turn)
    last = np.arange(1, both.shape[1])[None] == lengths[:, None] - 1
    of_stops = last & turn.stopped[:, None] & (both[:, 1:] == 0)

    tokens, counts = jnp.asarray(both), jnp.asarray(lengths)

    @jax.jit
    @jax.grad
    def gradient(nudge):
        # A nudge of the logits of token 0 through the head.
        table = case.params["embed_tokens"]["weight"].at[0].add(nudge)
        params = case.params | {"embed_tokens": {"weight": table}}
        return jnp.sum(case.model.log_probs(params, tokens, counts).log_prob * of_stops)

    assert of_stops.sum() >= 1
    assert np.abs(gradient(jnp.zeros(case.model.config.hidden_size))).max() > 1e-2


def test_every_row_has_its_budget(case):
    budgets = np.asarray([0, 1, 12, 5, 100, 0, 2, 3], np.int32)
    speaker, turn = case.speak(seed=3, budgets=budgets)
    assert np.all(turn.lengths <= np.minimum(budgets, LIMIT))
    for row in range(ROWS):
        assert turn.stopped[row] or turn.lengths[row] == min(budgets[row], LIMIT)
    # Who writes nothing would still say what he would have said.
    silent = budgets == 0
    assert not turn.stopped[silent].any()
    np.testing.assert_array_equal(speaker.logits[silent], case.heard.logits[silent])
    assert np.asarray(speaker.cache.lengths).tolist() == (GIVEN.lengths + turn.lengths).tolist()
    assert not speaker.cache.full


def test_no_row_writes_where_none_may(case):
    speaker, turn = case.speak(seed=4, budgets=np.zeros(ROWS, np.int32))
    jax.tree.map(np.testing.assert_array_equal, speaker, case.heard)
    assert not any(np.any(leaf) for leaf in turn)


def test_writing_ends_with_the_cache():
    case = of("llama-tied-biases")
    heard = listen(case.model, case.params, generate.begin(case.model, ROWS, 21), *GIVEN)
    speaker, turn = speak(case.model, case.weights, heard, jax.random.key(0), PLAIN, (), LIMIT)
    assert np.asarray(turn.lengths).tolist() == [5] * ROWS
    assert not np.any(turn.stopped)
    assert int(speaker.cache.used) == 21
    both = followed(*GIVEN, jax.tree.map(np.asarray, turn))
    raw = log_probs(case.model, case.params, *both).log_prob
    np.testing.assert_allclose(turn.raw_log_probs, written(raw, turn), atol=5e-4)


def test_rows_and_keys_are_different_noise_and_a_key_repeats():
    case = of("llama-tied-biases")
    same = texts((9,)).tokens.repeat(ROWS, axis=0)
    same = np.pad(same, ((0, 0), (0, 16 - 9)))
    heard = listen(case.model, case.params, generate.begin(case.model, ROWS, SLOTS), same, np.full(ROWS, 9, np.int32))
    one, again, other = (case.speak(seed, heard=heard)[1] for seed in (5, 5, 6))
    assert len({tuple(row) for row in one.tokens.tolist()}) == ROWS
    jax.tree.map(np.testing.assert_array_equal, one, again)
    assert not np.array_equal(one.tokens, other.tokens)


def test_conversations_go_on_where_they_were(case):
    """After turns of both sides, of any lengths, the next token is that of the whole conversation read anew."""
    said, answer = texts((16, 1, 9, 4, 16, 0, 2, 11), seed=3), case.speak(seed=7)
    speaker = listen(case.model, case.params, answer[0], *said)
    speaker, second = case.speak(seed=8, heard=speaker)
    both, lengths = followed(*GIVEN, answer[1])
    whole = followed(*followed(both, lengths, said), second)
    fresh = np.asarray(logits(case.model, case.params, *whole))
    last = fresh[np.arange(ROWS), whole[1] - 1]
    np.testing.assert_allclose(speaker.logits, last, atol=1e-4 * np.abs(last).max())
    assert np.asarray(speaker.cache.lengths).tolist() == whole[1].tolist()


def test_conversations_compile_a_bounded_number_of_times():
    """Once for every size of what is read, and once for what is written."""
    model, params = build("qwen3")
    weights, sizes, traces = fused.fuse(model, params), (4, 16), {"listen": 0, "speak": 0}

    def counted(name: str, function):
        def call(*args):
            traces[name] += 1
            return function(model, *args)

        return jax.jit(call)

    hear = counted("listen", generate.listen)
    answer = counted("speak", lambda model, w, s, key: generate.speak(model, w, s, key, PLAIN, STOPS, 4))
    speaker, rng = generate.begin(model, 2, 160), np.random.default_rng(0)
    for turn, longest in enumerate((5, 1, 16, 2, 3, 9, 4, 12)):
        counts = np.asarray([longest, rng.integers(0, longest + 1)], np.int32)
        size = next(size for size in sizes if size >= longest)
        speaker = hear(params, speaker, rng.integers(0, VOCABULARY, (2, size), dtype=np.int32), counts)
        speaker, _ = answer(weights, speaker, jax.random.key(turn))
        assert not speaker.cache.full
    assert traces == {"listen": len(sizes), "speak": 1}


def test_turns_have_room():
    case = of("llama-tied-biases")
    with pytest.raises(ValueError, match="limit = 0: a turn has room for at least 1 token"):
        generate.speak(case.model, case.weights, case.heard, jax.random.key(0), PLAIN, STOPS, 0)
