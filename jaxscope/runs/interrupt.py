"""Holding back an interrupt until nothing is half done."""

from __future__ import annotations

import signal
import sys


class HeldInterrupt:
    """While the context lasts, the first Ctrl-C only sets `asked`; a second one raises KeyboardInterrupt at once.

    Training gives its arrays away to each call: between that and the line of metrics there is no state that could be
    saved. Where interrupts are ignored or handled by others, or outside the main thread, nothing is changed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._installed = False

    def __enter__(self) -> HeldInterrupt:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, self._note)
                self._installed = True
            except ValueError:  # not the main thread
                pass
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, *_: object) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nstopping after this call; interrupt again to stop at once", file=sys.stderr, flush=True)
