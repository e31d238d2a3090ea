"""A conversation as tokens: what a model generated is kept id by id and never tokenised again.

Only texts that were given pass through the tokenizer, each once. After a generated turn, the text that a template adds
is found by rendering the chat with a sentinel in that turn's place and taking what stands behind it.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxscope.agents.llm import chat
from jaxscope.agents.llm.chat import Message
from jaxscope.agents.llm.escape import SENTINEL, encode_marked, escape, unescape
from jaxscope.agents.llm.stability import Stability, end_of_turn, prefix_stability
from jaxscope.agents.llm.tokenizer import Tokenizer

#: The speaker of given texts that cannot be told apart by message.
SEVERAL = "several"
# Samplers compute log-probabilities in float32, where that of a sure token may come out above 0 by rounding.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class Segment:
    """Consecutive tokens with one origin: a given message with its header, or one generated turn with its end.

    Attributes:
        speaker: Who is trained on the segment if it was generated: the role, unless another name was given.
        generated: Whether a model sampled these ids. No other token is ever in a loss.
        log_probs: Log-probability of each id when it was sampled; None for given texts, and where not recorded.
        weights_version: Number of the weights that sampled, where recorded.
    """

    speaker: str
    ids: tuple[int, ...]
    generated: bool = False
    log_probs: tuple[float, ...] | None = None
    weights_version: int | None = None

    def __post_init__(self) -> None:
        if any(id < 0 for id in self.ids):
            raise ValueError(f"ids must be at least 0, not {min(self.ids)}")
        if self.log_probs is None:
            return
        if len(self.log_probs) != len(self.ids):
            raise ValueError(f"{len(self.ids)} ids but {len(self.log_probs)} log-probabilities")
        wrong = [value for value in self.log_probs if not (math.isfinite(value) and value <= _ROUNDING)]
        if wrong:
            raise ValueError(f"log-probabilities must be finite and at most 0, not {wrong[0]}")


@dataclass(frozen=True, eq=False)
class Conversation:
    """Made by `start`; every operation returns a new one. Arrays have one entry a token, [L] in all.

    Attributes:
        messages: The chat so far, generated turns with their decoded text.
        segments: All tokens, in order.
        stability: What is known about the template. Where it does not only append, the ids here depart from what the
            template makes of `messages`: what was sampled stays.
    """

    tokenizer: Tokenizer
    messages: tuple[Message, ...]
    segments: tuple[Segment, ...]
    stability: Stability
    _options: Mapping[str, Any]  # of rendering
    _last_generated: int | None = None  # among messages
    _given: str = ""  # text since then, or from the start, that is among the segments
    _ended: bool = False  # whether the last generated turn came with an end, and nothing was given since

    @property
    def ids(self) -> Int[np.ndarray, " L"]:
        return np.array([id for segment in self.segments for id in segment.ids], np.int32)

    @property
    def positions(self) -> Int[np.ndarray, " L"]:
        return np.arange(len(self), dtype=np.int32)

    @property
    def segment_ids(self) -> Int[np.ndarray, " L"]:
        """Index into `segments`."""
        return np.repeat(np.arange(len(self.segments), dtype=np.int32), self._lengths())

    @property
    def speakers(self) -> tuple[str, ...]:
        """The speaker of each token."""
        return tuple(segment.speaker for segment in self.segments for _ in segment.ids)

    @property
    def generated(self) -> Bool[np.ndarray, " L"]:
        return np.repeat(np.array([segment.generated for segment in self.segments], bool), self._lengths())

    @property
    def log_probs(self) -> Float[np.ndarray, " L"]:
        """Log-probabilities of generated tokens, 0 for the others.

        Raises:
            ValueError: a generated turn came without; 0 would say that it was certain.
        """
        if any(segment.generated and segment.log_probs is None for segment in self.segments):
            raise ValueError("a generated turn has no log-probabilities")
        parts = [segment.log_probs or (0.0,) * len(segment.ids) for segment in self.segments]
        return np.array([value for part in parts for value in part], np.float32)

    @property
    def weights_versions(self) -> Int[np.ndarray, " L"]:
        """The version of the weights that sampled each token, -1 where none did or it was not recorded."""
        versions = [-1 if segment.weights_version is None else segment.weights_version for segment in self.segments]
        return np.repeat(np.array(versions, np.int32), self._lengths())

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Tokens at which generation must stop: the tokenizer's, and the end of turn that the template writes."""
        end = self.stability.end_of_turn_id
        return tuple(dict.fromkeys((*self.tokenizer.end_of_turn_ids, *([] if end is None else [end]))))

    @property
    def follows_template(self) -> bool:
        """Whether the template only appends, so that its own rendering of the chat has the same text."""
        return self.stability.append_only

    def __len__(self) -> int:
        return sum(self._lengths())

    def mask(self, speakers: Collection[str] = ("assistant",)) -> Bool[np.ndarray, " L"]:
        """The tokens to train on: those that were generated for one of `speakers`, the end of each turn among them."""
        if isinstance(speakers, str):
            raise ValueError(f"speakers must be several names, such as ({speakers!r},)")
        trained = [segment.generated and segment.speaker in speakers for segment in self.segments]
        return np.repeat(np.array(trained, bool), self._lengths())

    def prompt(self) -> Int[np.ndarray, " L"]:
        """Ids for a model to continue: the conversation and the header of the assistant's next turn."""
        return self._prompted().ids

    def append_generated(
        self,
        ids: Sequence[int] | Int[np.ndarray, " T"],
        log_probs: Sequence[float] | Float[np.ndarray, " T"] | None = None,
        *,
        speaker: str = "assistant",
        weights_version: int | None = None,
    ) -> Conversation:
        """Add the answer to `prompt()`.

        Args:
            ids: Exactly what was sampled, with the end of turn where it was sampled and nothing after it. An answer
                that was cut off has none; the template's end then follows as given text, on which nothing is trained.
            log_probs: Of each id at its sampling.
            speaker: A name for `mask`, where several policies speak.

        Raises:
            ValueError: there are no ids, or some after an end of turn, or the log-probabilities do not fit them.
        """
        sampled = tuple(int(id) for id in ids)
        stops = [place for place, id in enumerate(sampled) if id in self.stop_ids]
        if not sampled:
            raise ValueError("a generated turn needs at least one token")
        if stops and stops[0] != len(sampled) - 1:
            raise ValueError(
                f"id {sampled[stops[0]]} at place {stops[0]} of {len(sampled)} ends the turn; pass no ids after it"
            )
        recorded = None if log_probs is None else tuple(float(value) for value in log_probs)
        segment = Segment(speaker, sampled, True, recorded, weights_version)
        content = self.tokenizer.decode(sampled[:-1] if stops else sampled)
        before = self._prompted()
        return dataclasses.replace(
            before,
            messages=(*self.messages, {"role": "assistant", "content": content}),
            segments=(*before.segments, segment),
            _last_generated=len(self.messages),
            _given="",
            _ended=bool(stops),
        )

    def append_message(self, role: str, text: str) -> Conversation:
        """Add a given message: an observation, another player's words, the result of a tool."""
        return self.append_messages([{"role": role, "content": text}])

    def append_messages(self, messages: Sequence[Message]) -> Conversation:
        """Add given messages at once, as templates need that put several into one turn.

        Raises:
            ValueError: there is none, the template refuses the chat, or it changes what is already there, where
                `start` did not allow it.
        """
        if not messages:
            raise ValueError("there is no message to append")
        if self.follows_template:
            self._check_unchanged((*self.messages, *messages))
        return self._given_messages(tuple(messages))

    def _given_messages(self, messages: tuple[Message, ...]) -> Conversation:
        """With `messages` after the present ones, a segment each where the template renders one after the other."""
        everything = (*self.messages, *messages)
        whole = self._text(everything)
        new = self._new(whole)
        pieces, done = [], whole[: len(whole) - len(new)]
        for count, message in enumerate(messages[:-1], len(self.messages) + 1):
            try:
                text = self._text(everything[:count])
            except ValueError:  # refused only because the rest is missing
                break
            pieces.append((str(message["role"]), text[len(done) :]))
            done = text
        if len(pieces) == len(messages) - 1:
            pieces.append((str(messages[-1]["role"]), whole[len(done) :]))
        ids = encode_marked(new, self.tokenizer)
        parts = [Segment(speaker, tuple(encode_marked(text, self.tokenizer))) for speaker, text in pieces]
        if [id for part in parts for id in part.ids] != ids:
            parts = [Segment(SEVERAL, tuple(ids))]
        segments = (*self.segments, *parts)
        return dataclasses.replace(self, messages=everything, segments=segments, _given=whole, _ended=False)

    def _prompted(self) -> Conversation:
        text = self._text(self.messages, add_generation_prompt=True)
        ids = tuple(encode_marked(self._new(text), self.tokenizer))
        header = [Segment("assistant", ids)] if ids else []
        return dataclasses.replace(self, segments=(*self.segments, *header))

    def _text(self, messages: Sequence[Message], **options: Any) -> str:
        """The rendering of a chat, from behind the last generated turn on."""
        return self._around_sentinel(messages, **options)[1]

    def _around_sentinel(self, messages: Sequence[Message], **options: Any) -> tuple[str, str]:
        marked = escape(list(messages), self.tokenizer)
        if self._last_generated is None:
            return "", chat.render_marked(self.tokenizer, marked, **self._options, **options)
        marked[self._last_generated]["content"] = SENTINEL
        text = chat.render_marked(self.tokenizer, marked, **self._options, **options)
        if text.count(SENTINEL) != 1:
            raise ValueError(f"the chat template shows a generated turn {text.count(SENTINEL)} times instead of once")
        before, _, after = text.partition(SENTINEL)
        return before, after

    def _new(self, text: str) -> str:
        """What a rendering, from behind the last generated turn on, adds to the text that is there.

        Where an end of turn was sampled it stands for the one that the template writes, whichever that is.
        """
        given = end_of_turn(text, self.tokenizer) or "" if self._ended else self._given
        if not text.startswith(given):
            before, after = unescape(given, self.tokenizer), unescape(text, self.tokenizer)
            raise ValueError(
                f"the chat template changes the text after the last generated turn, from {before!r} to {after!r}; "
                "messages that share a turn must be appended together"
            )
        return text[len(given) :]

    def _check_unchanged(self, messages: Sequence[Message]) -> None:
        """With further messages, the text before the last generated turn is the prompt that it answered."""
        if self._last_generated is None:
            return
        answered = escape(list(self.messages[: self._last_generated]), self.tokenizer)
        prompt = chat.render_marked(self.tokenizer, answered, add_generation_prompt=True, **self._options)
        before, _ = self._around_sentinel(messages)
        if before != prompt:
            was, now = unescape(prompt, self.tokenizer), unescape(before, self.tokenizer)
            raise ValueError(f"the chat template changes an earlier prompt, from {was!r} to {now!r}")

    def _lengths(self) -> list[int]:
        return [len(segment.ids) for segment in self.segments]


def start(
    tokenizer: Tokenizer,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    keep_sampled: bool = False,
    now: datetime.datetime | None = None,
    **variables: Any,
) -> Conversation:
    """A conversation of given messages. Turns of the assistant among them are examples: nothing is trained on them.

    Args:
        messages: At least one, each with `role` and `content`.
        tools: JSON schemas, for templates that know tools.
        keep_sampled: What to do with a template that changes earlier text, as those do that drop reasoning once a turn
            is over: False refuses it; True keeps all tokens as they were sampled, so that a model sees its own earlier
            reasoning again, and `follows_template` is False.
        now: The time told to templates that ask, throughout the conversation; the present if None.
        variables: Further ones for the template, such as `enable_thinking`.

    Raises:
        ValueError: there is no template, it refuses the messages, or it changes earlier text.
    """
    stability = prefix_stability(None, tokenizer, tools=tools, **variables)
    if not stability.append_only and not keep_sampled:
        raise ValueError(f"{stability}\nWith keep_sampled=True, tokens stay as they were sampled.")
    options = {"tools": tools, "now": now or datetime.datetime.now(), **variables}
    return Conversation(tokenizer, (), (), stability, options)._given_messages(tuple(dict(m) for m in messages))
