"""Texts of messages cannot become control tokens: they are marked before a template is rendered, and unmarked after.

A marked text has, in the place of a control token, its number between two characters that Unicode reserves for use
within a program; where the first of these occurs itself it is marked too, so that no text is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jaxscope.agents.llm.tokenizer import Tokenizer

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
#: Never part of a marked text, since there the first of the two characters is always closed.
SENTINEL = _OPEN + _OPEN
_MARK = re.compile(f"{_OPEN}([0-9]*){_CLOSE}")


def escape(value: Any, tokenizer: Tokenizer) -> Any:
    """A text, or the texts within lists and dicts, with all control tokens marked.

    Raises:
        ValueError: a value is not of the kinds that JSON has.
    """
    if isinstance(value, str):
        controls = tuple(tokenizer.control_tokens)
        numbers = {text: str(number) for number, text in enumerate(controls)} | {_OPEN: ""}
        return _pattern((*controls, _OPEN)).sub(lambda match: _OPEN + numbers[match[0]] + _CLOSE, str(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {escape(key, tokenizer): escape(entry, tokenizer) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [escape(entry, tokenizer) for entry in value]
    raise ValueError(f"a chat holds texts, numbers, lists and dicts, not {type(value).__name__}")


def unescape(text: str, tokenizer: Tokenizer) -> str:
    """A marked text as it was."""
    controls = tuple(tokenizer.control_tokens)
    return _MARK.sub(lambda match: controls[int(match[1])] if match[1] else _OPEN, text)


def encode_marked(text: str, tokenizer: Tokenizer) -> list[int]:
    """Ids of a rendering of marked texts: control tokens that the template wrote are such, marked ones are text."""
    if _OPEN not in text:
        return tokenizer.encode(text, special=True)
    controls = tokenizer.control_tokens
    ids: list[int] = []
    for piece in _pattern(tuple(controls)).split(text) if controls else [text]:
        ids += [controls[piece]] if piece in controls else tokenizer.encode(unescape(piece, tokenizer))
    return ids


@lru_cache(maxsize=64)
def _pattern(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the texts, as one group; of two that begin alike the longer one."""
    return re.compile("(" + "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True)) + ")")
