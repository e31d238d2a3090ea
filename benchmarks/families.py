"""Benchmarks by family of environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Records = list[dict[str, Any]]


def measure(by_family: Mapping[str, Callable[[int], Records]], env: str | None, repeats: int) -> Records:
    """The records of one family, or of all.

    Raises:
        ValueError: there is no benchmark of the family `env`.
    """
    if env is not None and env not in by_family:
        raise ValueError(f"env = {env!r}: there are benchmarks of {' and '.join(by_family)}")
    return [record for family, run in by_family.items() if env in (None, family) for record in run(repeats)]
