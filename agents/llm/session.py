"""Conversations driven from Python: any lengths, a bounded number of compilations."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from jaxscope.agents.llm import fused, generate
from jaxscope.agents.llm.config import check_length
from jaxscope.agents.llm.generate import Speaker, Turn
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling
from jaxscope.types import PyTree

#: Lengths to which what is read is padded; what is longer is read in pieces of the last one.
BUCKETS = (16, 64, 256)


class Session:
    """A model in B conversations at once, each of which goes on where it was.

    Args:
        weights: of the model, as loaded or trained.
        rows: B.
        slots: tokens that each conversation has room for; with rows of different lengths some are lost to holes.
        stops: tokens that end a turn.

    Raises:
        ValueError: the model has a shorter context.
    """

    def __init__(
        self,
        model: LanguageModel,
        weights: PyTree,
        *,
        rows: int = 1,
        slots: int = 1024,
        sampling: Sampling | None = None,
        stops: Sequence[int] = (),
    ):
        check_length(model.config, slots)
        self.model, self.weights, self.slots, self.rows = model, weights, slots, rows
        self.sampling, self.stops = sampling or Sampling(), tuple(stops)
        self.fused = _fuse(model, weights)
        # The last piece that is read may be padded beyond the room that there is.
        self.speaker: Speaker = generate.begin(model, rows, slots + BUCKETS[-1])

    @property
    def used(self) -> int:
        """Slots written so far."""
        return int(self.speaker.cache.used)

    def listen(self, texts: Sequence[Sequence[int]]) -> None:
        """Read tokens, for each row some or none.

        Raises:
            ValueError: not one list per row, a token outside the vocabulary, or more than there is room for; nothing
                has been read then.
        """
        if len(texts) != self.rows:
            raise ValueError(f"{len(texts)} texts for {self.rows} conversations")
        longest = max(len(text) for text in texts)
        if self.used + longest > self.slots:
            raise ValueError(f"{longest} more tokens do not fit: {self.used} of {self.slots} are taken")
        vocabulary = self.model.config.vocab_size
        strange = sorted({int(token) for text in texts for token in text if not 0 <= token < vocabulary})
        if strange:
            raise ValueError(f"tokens {strange[:5]} are outside the model's vocabulary of {vocabulary}")
        for start in range(0, longest, BUCKETS[-1]):
            pieces = [text[start : start + BUCKETS[-1]] for text in texts]
            tokens, counts = _padded(pieces)
            self.speaker = _listen(self.model, self.weights, self.speaker, tokens, counts)

    def speak(self, key: PRNGKeyArray, limit: int, budgets: Sequence[int] | None = None) -> Turn:
        """Write at most `limit` tokens in every row, or as many as its budget says, until it ends its turn.

        Raises:
            ValueError: `limit` tokens do not fit any more.
        """
        if self.used + limit > self.slots:
            raise ValueError(f"{limit} more tokens do not fit: {self.used} of {self.slots} are taken")
        allowed = jnp.full(self.rows, limit) if budgets is None else jnp.asarray(budgets, jnp.int32)
        size = next((bucket for bucket in BUCKETS if bucket >= limit), limit)
        self.speaker, turn = _speak(
            self.model, self.fused, self.speaker, key, self.sampling, self.stops, size, jnp.minimum(allowed, limit)
        )
        return turn._replace(
            tokens=turn.tokens[:, :limit],
            log_probs=turn.log_probs[:, :limit],
            raw_log_probs=turn.raw_log_probs[:, :limit],
        )


def _padded(texts: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    size = next(bucket for bucket in BUCKETS if bucket >= max(len(text) for text in texts))
    tokens = np.zeros((len(texts), size), np.int32)
    for row, text in zip(tokens, texts, strict=True):
        row[: len(text)] = text
    return jnp.asarray(tokens), jnp.asarray([len(text) for text in texts], jnp.int32)


_fuse = jax.jit(fused.fuse, static_argnums=0)
_listen = jax.jit(generate.listen, static_argnums=0, donate_argnums=2)
_speak = jax.jit(generate.speak, static_argnums=(0, 4, 5, 6), donate_argnums=2)
