"""A terminal as a screen and a keyboard: pictures in half blocks, keys without Enter."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from jaxtyping import UInt8
from PIL import Image

_HOME, _CLEAR_BELOW, _CLEAR_LINE, _PLAIN = "\x1b[H", "\x1b[J", "\x1b[K", "\x1b[0m"
#: The alternate screen without a cursor, and back to what was there before.
_OPEN, _CLOSE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_NAMED = {" ": "space", "\r": "enter", "\n": "enter", "\x1b": "escape", "\x03": "escape", "\x04": "escape"}


@contextmanager
def full_screen() -> Iterator[None]:
    """Take the terminal for redrawing in place, and give it back as it was.

    Raises:
        ValueError: input or output is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError("this needs a terminal: input and output must not be redirected")
    import termios  # not everywhere: other commands do without
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setraw(sys.stdin)
        _write(_OPEN)
        yield
    finally:
        _write(_CLOSE)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def draw(picture: UInt8[np.ndarray, "height width 3"], lines: Sequence[str]) -> None:
    """A picture as large as fits, over lines of text."""
    columns, rows = shutil.get_terminal_size()
    below = [line[: columns - 1] + _CLEAR_LINE for line in lines]
    above = half_blocks(picture, columns - 1, rows - len(lines) - 1)
    _write(_HOME + "\r\n".join([*above, *below]) + _CLEAR_BELOW)


def half_blocks(picture: UInt8[np.ndarray, "height width 3"], columns: int, rows: int) -> list[str]:
    """Lines of at most `columns` characters, each two pixels: its colour above and its background below."""
    height, width = picture.shape[:2]
    scale = max(min(columns / width, 2 * rows / height, 1.0), 1 / width)
    size = (max(round(width * scale), 1), max(2 * round(height * scale / 2), 2))
    pixels = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS))
    lines = []
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        cells = [
            f"\x1b[38;2;{u[0]};{u[1]};{u[2]}m\x1b[48;2;{v[0]};{v[1]};{v[2]}m▀"
            for u, v in zip(upper, lower, strict=True)
        ]
        lines.append("".join(cells) + _PLAIN + _CLEAR_LINE)
    return lines


def read_key() -> str:
    """The next key: `up`, `down`, `left`, `right`, `space`, `enter`, `escape`, or the character itself."""
    character = _read()
    if character != "\x1b" or not _waiting():
        return _NAMED.get(character, character)
    if _read() not in "[O":
        return "escape"
    final = _read()
    while final.isdigit() or final == ";":  # with modifiers
        final = _read()
    return _ARROWS.get(final, "unknown")


def _read() -> str:
    byte = os.read(sys.stdin.fileno(), 1)
    return byte.decode("latin-1") if byte else "\x04"


def _waiting() -> bool:
    """Whether more of an escape sequence is there already; a person's Escape key stands alone."""
    return bool(select.select([sys.stdin], [], [], 0.05)[0])


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
