"""Talk with a language model in the terminal: jaxscope chat MODEL.

The answer appears word by word. An empty line, `/quit` or Ctrl-D ends the conversation; `/again` starts a new one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import tyro

from jaxscope.agents import llm
from jaxscope.agents.llm.sampling import Sampling
from jaxscope.agents.llm.session import Session

#: Tokens between two looks at the terminal.
STRIDE = 4


@dataclass(frozen=True)
class Options:
    model: tyro.conf.Positional[str] = "smollm2-135m"
    """A known model (`jaxscope list models`), a folder or file with weights, or a hub id."""
    system: str | None = None
    """Instructions to the model; by default those of its own template."""
    temperature: float = 0.7
    """0 always takes the likeliest word."""
    top_p: float = 0.95
    """Keep the likeliest words that together have this probability."""
    context: int = 2048
    """Tokens of the whole conversation, at most."""
    answer: int = 256
    """Tokens of one answer, at most."""
    seed: int = 0
    """Root of the randomness."""


def run(options: Options) -> None:
    sampling = Sampling(options.temperature, top_p=options.top_p)
    if options.answer < 1 or options.context < 2:
        raise ValueError(f"answer = {options.answer}, context = {options.context}: must be at least 1 and 2")
    loaded = llm.load(options.model)
    print(f"{options.model}: {loaded.parameters:,} parameters. An empty line ends, /again starts anew.", file=sys.stderr)
    key = jax.random.key(options.seed)
    for number, talk in enumerate(_talks(options, loaded, sampling)):
        for turn, line in enumerate(talk.lines):
            for piece in talk.answer(line, jax.random.fold_in(jax.random.fold_in(key, number), turn)):
                print(piece, end="", flush=True)
            print(flush=True)
        if talk.over:
            return
