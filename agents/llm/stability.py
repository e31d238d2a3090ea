"""Whether a chat template only ever appends, so that what was generated once can stay as it is."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxscope.agents.llm import chat
from jaxscope.agents.llm.chat import Message
from jaxscope.agents.llm.escape import SENTINEL, encode_marked, escape
from jaxscope.agents.llm.tokenizer import Tokenizer

_SHOWN = 60
# Texts are compared as of one time; what templates say of it is no rewriting.
_NOON = datetime.datetime(2000, 1, 1, 12)


@dataclass(frozen=True)
class Rewrite:
    """A place where the text of a longer chat does not begin with that of the shorter one.

    Attributes:
        chat: What kind of chat, and which step of it.
        kept: The end of what both texts have in common.
        before: How the text went on.
        after: How it goes on after the step.
    """

    chat: str
    kept: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.chat}: after {self.kept!r} stood {self.before!r}, then stands {self.after!r}"


@dataclass(frozen=True)
class Stability:
    """What `prefix_stability` found.

    Attributes:
        rewrites: Places where the template changes its earlier text; none for a template that only appends.
        pieces_agree: Whether texts tokenised turn by turn give the ids of the whole text.
        end_of_turn_id: The control token that the template puts after a turn of the assistant, if it does.
    """

    rewrites: tuple[Rewrite, ...]
    pieces_agree: bool
    end_of_turn_id: int | None

    @property
    def append_only(self) -> bool:
        return not self.rewrites

    def __str__(self) -> str:
        if self.append_only:
            return "the chat template only appends"
        lines = "".join(f"\n  {rewrite}" for rewrite in self.rewrites)
        return f"the chat template changes what it has already rendered:{lines}"


def prefix_stability(template: str | None, tokenizer: Tokenizer, **options: Any) -> Stability:
    """Render chats turn by turn, of which some have reasoning in them, and compare each text with the one before.

    Args:
        template: A template; the tokenizer's own if None.
        options: As for `chat.render`, but for messages and time.

    Raises:
        ValueError: the template refuses even a chat of user messages and answers, or options are not what JSON has.
    """
    given = tokenizer.chat_template if template is None else template
    if given is None:
        raise ValueError("this tokenizer has no chat template")
    return _probe(given, tokenizer, json.dumps(escape(options, tokenizer), sort_keys=True))


def end_of_turn(text: str, tokenizer: Tokenizer) -> str | None:
    """The end mark with which a text begins that follows an assistant's content, with space before it."""
    start = text.lstrip()
    marks = [mark for mark in tokenizer.control_tokens if start.startswith(mark)]
    if not marks:
        return None
    mark = max(marks, key=len)
    return text[: len(text) - len(start)] + mark


_SYSTEM = {"role": "system", "content": "Be brief."}
_ANSWERS = {
    "plain answers": ("One.", "Two."),
    "answers with reasoning": ("<think>\nFirst.\n</think>\n\nOne.", "<think>\nSecond.\n</think>\n\nTwo."),
}


@lru_cache(maxsize=32)
def _probe(template: str, tokenizer: Tokenizer, json_options: str) -> Stability:
    options: dict[str, Any] = json.loads(json_options)

    def text(messages: Sequence[Message], **more: Any) -> str:
        return chat.render(template, messages, now=_NOON, **{**tokenizer.named_tokens, **options, **more})

    answered: list[Message] = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": SENTINEL}]
    _, shown, after = text(answered).rpartition(SENTINEL)
    mark = end_of_turn(after, tokenizer) if shown else None
    rewrites, agree = [], True
    for opening in ([], [_SYSTEM]):
        for name, answers in _ANSWERS.items():
            messages: list[Message] = [*opening]
            for turn, answer in enumerate(answers):
                messages += [{"role": "user", "content": f"Question {turn}?"}, {"role": "assistant", "content": answer}]
            messages.append({"role": "user", "content": "Thanks."})
            kind = f"{name}, {'with' if opening else 'without'} a system message"
            try:
                steps = list(_steps(messages, text))
            except ValueError:
                if opening:  # some families have no such role
                    continue
                raise
            found = [rewrite for step in steps if (rewrite := _compare(kind, *step))]
            rewrites += found
            agree &= bool(found) or _agree([before for _, before, _ in steps] + [steps[-1][2]], tokenizer)
    return Stability(tuple(rewrites), agree, None if mark is None else tokenizer.control_tokens[mark.strip()])


def _steps(messages: Sequence[Message], text: Any) -> Iterator[tuple[str, str, str]]:
    """What happens, the text before and the text after, where the former should begin the latter."""
    first = next(count for count, message in enumerate(messages, 1) if message["role"] == "user")
    for count in range(first, len(messages)):
        so_far, message = messages[:count], messages[count]
        where = f"{message['role']} message {count + 1} of {len(messages)}"
        if message["role"] == "assistant":
            prompt = text(so_far, add_generation_prompt=True)
            yield f"the prompt before {where}", text(so_far), prompt
            yield where, prompt + message["content"], text(messages[: count + 1])
        else:
            yield where, text(so_far), text(messages[: count + 1])


def _compare(kind: str, step: str, before: str, after: str) -> Rewrite | None:
    if after.startswith(before):
        return None
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    common = sum(1 for _ in same)
    part = slice(common, common + _SHOWN)
    return Rewrite(f"{kind}, {step}", before[max(0, common - _SHOWN) : common], before[part], after[part])


def _agree(texts: list[str], tokenizer: Tokenizer) -> bool:
    """Whether the pieces between growing texts, each tokenised on its own, make up the ids of the last text."""
    pieces = [after[len(before) :] for before, after in zip(["", *texts], texts, strict=False)]
    ids = [id for piece in pieces for id in encode_marked(piece, tokenizer)]
    return ids == encode_marked(texts[-1], tokenizer)
