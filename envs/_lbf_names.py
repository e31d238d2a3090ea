"""Names of foraging games: `[Ss-]RxC-Pp-Ff[-coop][?setting=value&...]`."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from jaxscope import registry

PATTERN = re.compile(r"(?:(\d+)s-)?(\d+)x(\d+)-(\d+)p-(\d+)f(-coop)?")
#: Settings that the first part of a name says.
IN_FIRST_PART = ("rows", "cols", "num_agents", "num_foods", "sight", "force_coop")
ALLOWED = (
    "A foraging game is named [SIGHTs-]ROWSxCOLS-PLAYERSp-FOODSf[-coop][?SETTING=VALUE&...], "
    "for example 8x8-2p-3f, 2s-8x8-2p-3f-coop or 8x8-2p-3f?penalty=0.1"
)


def compose(config: Any) -> str:
    """The name of a dataclass of settings, without its family; `settings` of it gives the settings back."""
    sight = "" if config.sight is None else f"{config.sight}s-"
    coop = "-coop" if config.force_coop else ""
    name = f"{sight}{config.rows}x{config.cols}-{config.num_agents}p-{config.num_foods}f{coop}"
    values = {field.name: getattr(config, field.name) for field in _further(config)}
    defaults = {field.name: field.default for field in _further(config)}
    changed = [f"{key}={_write(value)}" for key, value in values.items() if value != defaults[key]]
    return name + ("?" + "&".join(changed) if changed else "")


def settings(name: str, config_class: Any) -> dict[str, Any]:
    """The settings that a name stands for.

    Raises:
        ValueError: the name is not of the form above, or a setting is unknown, repeated or of the wrong kind.
    """
    first, _, rest = name.partition("?")
    match = PATTERN.fullmatch(first)
    if match is None or name.endswith("?"):
        raise ValueError(f"{name!r} names no foraging game. {ALLOWED}.")
    sight, rows, cols, players, foods, coop = match.groups()
    found: dict[str, Any] = {
        "rows": int(rows),
        "cols": int(cols),
        "num_agents": int(players),
        "num_foods": int(foods),
        "sight": None if sight is None else int(sight),
        "force_coop": coop is not None,
    }
    fields = {field.name: field for field in _further(config_class)}
    for item in rest.split("&") if rest else ():
        key, _, text = item.partition("=")
        if key not in fields:
            raise ValueError(registry.unknown("a foraging game has no setting", key, fields))
        if key in found:
            raise ValueError(f"{name!r} gives {key} twice")
        found[key] = _read(key, text, str(fields[key].type))
    return found


def _further(config: Any) -> list[dataclasses.Field]:
    return [field for field in dataclasses.fields(config) if field.name not in IN_FIRST_PART]


def _write(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else repr(value)


def _read(key: str, text: str, kind: str) -> Any:
    """The value that `text` says for a setting whose annotation is `kind`."""
    special = {"bool": {"true": True, "false": False}, "int | None": {"none": None}}.get(kind, {})
    if text in special:
        return special[text]
    try:
        return {"int": int, "int | None": int, "float": float}[kind](text)
    except (KeyError, ValueError):
        allowed = {"bool": "true or false", "int": "an integer", "int | None": "an integer or none"}
        raise ValueError(f"{key}={text}: {key} must be {allowed.get(kind, 'a number')}") from None
