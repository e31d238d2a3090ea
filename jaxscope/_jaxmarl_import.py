"""The parts of JaxMARL that the adapters use, imported without its printed lines and warnings."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator

__all__ = [
    "MAP_NAME_TO_SCENARIO",
    "SMAX",
    "HeuristicEnemySMAX",
    "LearnedPolicyEnemySMAX",
    "MultiAgentEnv",
    "SimpleMPE",
    "jaxmarl",
    "overcooked_layouts",
    "spaces",
]


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep what JaxMARL prints and warns of on import from being seen, and its hands off the standard streams.

    It points `sys.stdout` at `sys.__stdout__` on the way and leaves it so, hence both are set aside.
    """
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr", "__stdout__")}
    sys.stdout = sys.__stdout__ = io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, stream in streams.items():
            setattr(sys, name, stream)


with _quietly():
    try:
        import jaxmarl
    except ModuleNotFoundError as error:
        if error.name != "jaxmarl":
            raise
        raise ImportError('environments of JaxMARL need JaxMARL: pip install "jaxscope[jaxmarl]"') from None
    from jaxmarl.environments import SMAX, HeuristicEnemySMAX, LearnedPolicyEnemySMAX, MultiAgentEnv, SimpleMPE, spaces
    from jaxmarl.environments.overcooked import overcooked_layouts
    from jaxmarl.environments.smax.smax_env import MAP_NAME_TO_SCENARIO
