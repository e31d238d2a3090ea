"""Where tables are printed."""

from __future__ import annotations

import sys

from rich.console import Console

_WIDTH_OF_A_FILE = 200


def console() -> Console:
    """Standard output; a file or a pipe is wide, so that no cell is cut short in it."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE)
