"""Writing files so that a kill or a full disk never leaves half of one."""

from __future__ import annotations

import os
from pathlib import Path


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
