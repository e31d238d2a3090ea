"""Options within a name: `NAME?option=value&option=value`, values being literals."""

from __future__ import annotations

import ast
import dataclasses
import math
import types
import typing
import urllib.parse
from collections.abc import Collection
from typing import Any

from jaxscope import registry

WORDS = {"true": True, "false": False, "none": None, "inf": math.inf}
KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a word", types.NoneType: "none"}


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


def changed(config: Any, but: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass that are not at their defaults, those of `but` left out."""
    fields = {field.name: field.default for field in dataclasses.fields(config) if field.name not in but}
    return {name: getattr(config, name) for name, default in fields.items() if getattr(config, name) != default}


def check(options: dict[str, Any], config_class: Any, what: str, but: Collection[str] = ()) -> dict[str, Any]:
    """The options, which must be fields of a dataclass (those of `but` excepted) and of the kinds annotated there.

    Raises:
        ValueError: an option does not exist, or its value is of another kind; `what` has it, in the message.
    """
    hints = typing.get_type_hints(config_class)
    known = [field.name for field in dataclasses.fields(config_class) if field.name not in but]
    checked = {}
    for option, value in options.items():
        if option not in known:
            raise ValueError(registry.unknown(f"{what} has no option", option, known))
        checked[option] = _checked(option, value, hints[option])
    return checked


def _checked(option: str, value: Any, hint: Any) -> Any:
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    kinds = typing.get_args(hint) if union else (hint,)
    for kind in kinds:
        plain = typing.get_origin(kind) or kind
        if plain is float and (type(value) is int or isinstance(value, float)):
            return float(value)
        if plain is typing.Literal and value in typing.get_args(kind):
            return value
        if plain is tuple and type(value) is tuple:
            entries = (int,) if int in typing.get_args(kind) else (int, float)
            if all(type(entry) in entries for entry in value):
                return value
        elif plain is not typing.Literal and type(value) is plain:
            return value
    raise ValueError(f"{option}={_write(value)}: {option} must be {' or '.join(_say(kind) for kind in kinds)}")


def _say(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(str(word) for word in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return f"{'integers' if int in typing.get_args(kind) else 'numbers'} separated by commas"
    return KINDS.get(kind, str(kind))


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
