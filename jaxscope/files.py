"""Naming files, and writing them so that a kill or a full disk never leaves half of one."""

from __future__ import annotations

import os
from pathlib import Path


def file_name(text: str, keep: str = "-.") -> str:
    """`text` as part of a file's name: letters, digits and the marks in `keep`, a hyphen for all else."""
    return "".join(letter if letter.isalnum() or letter in keep else "-" for letter in text)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` as a whole, or leave it as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """`write_bytes` for text."""
    write_bytes(path, content.encode())
