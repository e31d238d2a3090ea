"""Talk with a language model in the terminal: jaxscope chat MODEL.

The answer appears word by word. An empty line, `/quit` or Ctrl-D ends the conversation; `/again` starts a new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import tyro
from jaxtyping import PRNGKeyArray

from jaxscope.agents import llm
from jaxscope.agents.llm.config import check_length
from jaxscope.agents.llm.conversation import start
from jaxscope.agents.llm.sampling import Sampling
from jaxscope.agents.llm.session import Session
from jaxscope.agents.llm.tokenizer import Tokenizer

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
    context: int | None = None
    """Tokens of the whole conversation, at most; by default 2048, or what the model has if that is less."""
    answer: int = 256
    """Tokens of one answer, at most."""
    seed: int = 0
    """Root of the randomness."""


def run(options: Options) -> None:
    sampling = Sampling(options.temperature, top_p=options.top_p)
    if options.answer < 1:
        raise ValueError(f"answer = {options.answer}: must be at least 1")
    loaded = llm.load(options.model)
    slots = min(2048, loaded.model.config.max_position_embeddings) if options.context is None else options.context
    check_length(loaded.model.config, slots)
    print(f"{options.model}: {loaded.parameters:,} parameters. An empty line ends, /again starts anew.")
    key = jax.random.key(options.seed)
    for number in itertools.count():
        session = Session(loaded.model, loaded.params, slots=slots, sampling=sampling, stops=loaded.stops)
        if not _talk(options, loaded, session, jax.random.fold_in(key, number)):
            return


def _talk(options: Options, loaded: llm.Pretrained, session: Session, key: PRNGKeyArray) -> bool:
    """One conversation, to its end; whether another one is wanted."""
    said = None if options.system is None else start(loaded.tokenizer, [_message("system", options.system)])
    heard = 0
    while True:
        line = _line()
        if line in ("", "/quit"):
            return False
        if line == "/again":
            return True
        mine = _message("user", line)
        said = start(loaded.tokenizer, [mine]) if said is None else said.append_messages([mine])
        prompt = said.prompt().tolist()
        session.listen([prompt[heard:]])
        answer = []
        for token in _tokens(session, jax.random.fold_in(key, heard), options):
            answer.append(token)
            _print_more(loaded.tokenizer, answer)
        print(flush=True)
        said = said.append_generated(answer)
        heard = len(prompt) + len(answer)


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _line() -> str:
    try:
        return input("> ").strip()
    except EOFError:
        return ""


def _tokens(session: Session, key: PRNGKeyArray, options: Options) -> Iterator[int]:
    """The tokens of an answer, as they are drawn."""
    for start_at in range(0, options.answer, STRIDE):
        limit = min(STRIDE, options.answer - start_at, session.slots - session.used)
        if limit < 1:
            print("\n(the context is full: /again starts anew)", end="")
            return
        turn = session.speak(jax.random.fold_in(key, start_at), limit)
        yield from turn.tokens[0, : int(turn.lengths[0])].tolist()
        if turn.stopped[0]:
            return


def _print_more(tokenizer: Tokenizer, answer: list[int]) -> None:
    """Print what the last token adds, once its bytes are whole characters."""
    before, now = tokenizer.decode(answer[:-1]), tokenizer.decode(answer)
    whole = before.rstrip("\ufffd")
    if not now.endswith("\ufffd"):
        print(now[len(whole) :], end="", flush=True)
