"""The one registry: the name of a thing is the name of its file."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType


def names(package: str) -> list[str]:
    """Names of the public modules of `package`, that is of its files without a leading underscore."""
    path = importlib.import_module(package).__path__
    return sorted(module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_"))


def load(package: str, name: str) -> ModuleType:
    """The module `name` of `package`; a hyphen stands for an underscore.

    Raises:
        ValueError: there is no such file; the message lists what there is.
    """
    name = name.replace("-", "_")
    known = names(package)
    if name not in known:
        raise ValueError(unknown(f"{package} has no", name, known))
    return importlib.import_module(f"{package}.{name}")


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that does not exist: what was asked, the nearest right answer, all right answers."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{what} {name!r}.{hint} It has: {', '.join(known)}."
