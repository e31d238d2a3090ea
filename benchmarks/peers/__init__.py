"""What jaxscope is measured against. Peers are imported inside functions: `benchmarks` imports without them."""

from __future__ import annotations

import importlib
from typing import Any

INSTALL = "pip install jumanji==1.1.2 lbforaging==2.0.0 jaxmarl==0.2.0 overcooked-ai==1.1.0"


def peer(module: str, install: str = INSTALL) -> Any:
    """The module of a peer package, imported now; `install` is the command that gives it.

    Raises:
        ImportError: where the package is absent; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".", 1)[0]
        if error.name != package:
            raise
        raise ImportError(f"{package} is not installed, and this benchmark measures against it: {install}") from None
