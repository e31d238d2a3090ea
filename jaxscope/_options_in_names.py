"""Options within a name: `NAME?option=value&option=value`, values being literals."""

from __future__ import annotations

import ast
import urllib.parse
from typing import Any

WORDS = {"true": True, "false": False, "none": None}


def compose(name: str, options: dict[str, Any]) -> str:
    """The name that `read` takes apart into `name` and `options`."""
    query = "&".join(f"{option}={_write(value)}" for option, value in options.items())
    return name + ("?" + query if query else "")


def read(name: str) -> tuple[str, dict[str, Any]]:
    """The name proper and the options.

    Raises:
        ValueError: the options are not of the form above, or one is given twice.
    """
    proper, mark, query = name.partition("?")
    found: dict[str, Any] = {}
    for item in query.split("&") if mark else ():
        option, equals, text = item.partition("=")
        if not (option and equals):
            raise ValueError(f"{name!r}: options are written {proper}?option=value&option=value")
        if option in found:
            raise ValueError(f"{name!r} gives {option} twice")
        found[option] = _parse(urllib.parse.unquote(text))
    return proper, found


def is_literal(value: Any) -> bool:
    """Whether `value` can stand within a name: a number, a string, a boolean, None or a tuple of these."""
    if isinstance(value, tuple):
        return all(is_literal(entry) for entry in value)
    return value is None or isinstance(value, bool | int | float | str)


def _write(value: Any) -> str:
    text = str(value).lower() if value is None or isinstance(value, bool) else repr(value)
    if isinstance(value, str) and _parse(value) == value:
        text = value
    return urllib.parse.quote(text, safe="(),'|")


def _parse(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
