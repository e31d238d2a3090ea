"""Noticing damage: the digest of every file of a folder, kept with it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from jaxscope.files import write_text

_NAME = "sha256.json"


def seal(folder: Path) -> None:
    """Note the digests of all files in `folder`, once; nothing in it may change from now on."""
    if not (folder / _NAME).exists():
        write_text(folder / _NAME, json.dumps(_digests(folder), indent=2) + "\n")


def verify(folder: Path) -> None:
    """Check a sealed folder; one that a kill left without a seal passes.

    Raises:
        ValueError: a file is missing or is not as it was when the folder was sealed.
    """
    if not (folder / _NAME).exists():
        return
    try:
        noted = json.loads((folder / _NAME).read_bytes())
    except ValueError as error:
        raise ValueError(f"{_NAME} is not JSON") from error
    found = _digests(folder)
    for name, digest in noted.items():
        if found.get(name) != digest:
            raise ValueError(f"{name} is {'not as it was written' if name in found else 'missing'}")


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _NAME)
    return {path.relative_to(folder).as_posix(): _digest(path) for path in files}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
