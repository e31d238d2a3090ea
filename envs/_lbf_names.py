"""Names of foraging games: `[Ss-]RxC-Pp-Ff[-coop][?setting=value&...]`."""

from __future__ import annotations

import re
from typing import Any

from jaxscope import options_in_names

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
    return options_in_names.compose(name, options_in_names.changed(config, but=IN_FIRST_PART))


def settings(name: str, config_class: Any) -> dict[str, Any]:
    """The settings that a name stands for.

    Raises:
        ValueError: the name is not of the form above, or a setting is unknown, repeated or of the wrong kind.
    """
    first, options = options_in_names.read(name)
    match = PATTERN.fullmatch(first)
    if match is None:
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
    return found | options_in_names.check(options, config_class, "a foraging game", but=IN_FIRST_PART)
