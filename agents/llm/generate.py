"""Turns of a conversation: read what the others said, then write, on the same cache."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from jaxscope.agents.llm import cache as caches
from jaxscope.agents.llm.cache import Cache
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling, draw
from jaxscope.types import PyTree


class Speaker(NamedTuple):
    """A model in the middle of B conversations."""

    cache: Cache
    logits: Float[Array, "B V"]
    """Of each row's next token."""


class Turn(NamedTuple):
    """What was written: N tokens of every row at most, entries beyond a row's length are 0."""

    tokens: Int[Array, "B N"]
    log_probs: Float[Array, "B N"]
    """Under the distribution that the tokens were drawn from."""
    raw_log_probs: Float[Array, "B N"]
    """Under the softmax of the model's logits."""
    lengths: Int[Array, " B"]
    stopped: Bool[Array, " B"]
    """The row's last token is one that ends a turn; else its budget or the cache came to an end."""


def begin(model: LanguageModel, rows: int, slots: int) -> Speaker:
    """A speaker who has read nothing yet, and has to before writing."""
    return Speaker(caches.empty(model, rows, slots), jnp.zeros((rows, model.config.vocab_size)))


def listen(
    model: LanguageModel, params: PyTree, speaker: Speaker, tokens: Int[Array, "B T"], counts: Int[Array, " B"]
) -> Speaker:
    """Read the first `counts` of each row's tokens; rows that read none keep what they would say next."""
    cache, hidden = caches.read(model, params, speaker.cache, tokens, counts)
    logits = model.predict(params, hidden)
    # Not `counts > 0`: what does not fit is not read.
    heard = cache.lengths > speaker.cache.lengths
    return Speaker(cache, jnp.where(heard[:, None], logits, speaker.logits))


def speak(
    model: LanguageModel,
    weights: PyTree,
    speaker: Speaker,
    key: PRNGKeyArray,
    sampling: Sampling,
    stops: tuple[int, ...],
    limit: int,
    budgets: Int[Array, " B"] | None = None,
) -> tuple[Speaker, Turn]:
    """Write until every row has ended its turn, used up its budget, or the cache is full.

    Each written token is read at once, the last one too, so that the next turn goes on from here.

    Args:
        weights: of `fused.fuse`.
        stops: tokens that end a turn; they belong to it.
        limit: N, the most tokens that any row may write.
        budgets: the most for each row; rows with 0 write nothing.

    Raises:
        ValueError: `limit` is below 1.
    """
    if limit < 1:
        raise ValueError(f"limit = {limit}: a turn has room for at least 1 token")
    rows, slots = speaker.cache.positions.shape
    nothing = jnp.zeros((rows, limit))
    budgets = jnp.full(rows, limit, jnp.int32) if budgets is None else jnp.minimum(budgets, limit)
    turn = Turn(nothing.astype(jnp.int32), nothing, nothing, jnp.zeros(rows, jnp.int32), jnp.zeros(rows, bool))

    def unfinished(carry):
        step, speaker, turn = carry
        return jnp.any(_speaking(turn, budgets)) & (step < limit) & (speaker.cache.used < slots)

    def write(carry):
        step, speaker, turn = carry
        speaking = _speaking(turn, budgets)
        drawn = draw(jax.random.fold_in(key, step), speaker.logits, sampling)
        token = jnp.where(speaking, drawn.token, 0)
        cache, hidden = caches.read_unrolled(model, weights, speaker.cache, token[:, None], speaking.astype(jnp.int32))
        logits = jnp.where(speaking[:, None], model.predict(weights, hidden), speaker.logits)
        turn = Turn(
            _put(turn.tokens, step, token),
            _put(turn.log_probs, step, jnp.where(speaking, drawn.log_prob, 0.0)),
            _put(turn.raw_log_probs, step, jnp.where(speaking, drawn.raw_log_prob, 0.0)),
            turn.lengths + speaking,
            turn.stopped | (speaking & jnp.isin(token, jnp.asarray(stops, jnp.int32))),
        )
        return step + 1, Speaker(cache, logits), turn

    _, speaker, turn = jax.lax.while_loop(unfinished, write, (jnp.zeros((), jnp.int32), speaker, turn))
    return speaker, turn


def _speaking(turn: Turn, budgets: Int[Array, " B"]) -> Bool[Array, " B"]:
    return ~turn.stopped & (turn.lengths < budgets)


def _put(values: Array, step: Int[Array, ""], column: Array) -> Array:
    return jax.lax.dynamic_update_slice(values, column[:, None].astype(values.dtype), (0, step))
