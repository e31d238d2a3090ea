"""Tokens per second of the language model beside transformers on PyTorch: prefill, decoding, a training step.

Both have random weights of SmolLM2-135M's shapes in float32: speed does not depend on the values.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console

from benchmarks.peers.transformers_lm import Peer
from benchmarks.timing import Contender, compare, print_table, result_record
from jaxscope.agents.llm import fused, generate, known
from jaxscope.agents.llm.config import to_hugging_face
from jaxscope.agents.llm.loss import next_token_loss
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling

NAME = "SmolLM2-135M"
CONTEXT, WRITTEN = 256, 32
ROWS = (1, 8, 32)
TRAINED_ROWS = 8


def run(repeats: int = 5) -> list[dict[str, Any]]:
    """Measure, print and return the records, one per table."""
    model = LanguageModel(known.config(NAME), remat="products")
    params = jax.jit(model.init)(jax.random.key(0))
    peer = Peer(to_hugging_face(model.config))
    records = []
    for rows in ROWS:
        tokens = _tokens(rows)
        pair = [_decode(model, params, tokens), peer.decode(tokens, WRITTEN)]
        records.append(_measured(f"decode, {rows} rows, {WRITTEN} tokens after {CONTEXT}", pair, repeats))
    tokens = _tokens(TRAINED_ROWS)
    what = f"{TRAINED_ROWS} rows of {CONTEXT} tokens"
    records.append(_measured(f"prefill, {what}", [_prefill(model, params, tokens), peer.prefill(tokens)], repeats))
    ours, extra = _train(model, params, tokens)
    print(f"training: {extra / 2**30:.2f} GiB beyond weights and optimiser state")
    records.append(_measured(f"training step, {what}", [ours, peer.train(tokens)], repeats, extra_bytes=extra))
    return records


def _tokens(rows: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, known.config(NAME).vocab_size, (rows, CONTEXT))


def _prefill(model: LanguageModel, params: Any, tokens: np.ndarray) -> Contender:
    rows = len(tokens)
    read = jax.jit(
        lambda params, tokens: generate.listen(
            model, params, generate.begin(model, rows, CONTEXT), tokens, jnp.full(rows, CONTEXT)
        )
    )
    return Contender("jaxscope", lambda: read(params, jnp.asarray(tokens)), tokens.size, unit="tokens/s")


def _decode(model: LanguageModel, params: Any, tokens: np.ndarray) -> Contender:
    rows = len(tokens)
    weights = jax.jit(functools.partial(fused.fuse, model))(params)
    speaker = generate.begin(model, rows, CONTEXT + WRITTEN)
    listen = jax.jit(functools.partial(generate.listen, model))
    speaker = listen(params, speaker, jnp.asarray(tokens), jnp.full(rows, CONTEXT))
    greedy = Sampling(temperature=0.0)
    write = jax.jit(
        lambda weights, speaker: generate.speak(model, weights, speaker, jax.random.key(0), greedy, (), WRITTEN)[1]
    )
    return Contender("jaxscope", lambda: write(weights, speaker), rows * WRITTEN, unit="tokens/s")


def _train(model: LanguageModel, params: Any, tokens: np.ndarray) -> tuple[Contender, int]:
    """The step, and the bytes that it needs beyond its arguments and results."""
    optimiser = optax.adamw(1e-5)
    lengths = jnp.full(len(tokens), CONTEXT)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, tokens):
        loss, gradient = jax.value_and_grad(lambda p: next_token_loss(model, p, tokens, lengths))(params)
        updates, state = optimiser.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    carry = [jax.tree.map(jnp.copy, params), optimiser.init(params)]

    def run():
        new, state, loss = step(*carry, jnp.asarray(tokens))
        carry[:] = [new, state]
        return loss

    analysis = step.lower(*carry, jnp.asarray(tokens)).compile().memory_analysis()
    assert analysis is not None
    return Contender("jaxscope", run, tokens.size, unit="tokens/s"), int(analysis.temp_size_in_bytes)


def _measured(title: str, pair: list[Contender], repeats: int, **settings: Any) -> dict[str, Any]:
    rates = compare(pair, repeats)
    print_table(rates, f"{NAME}, float32: {title}", pair[1].name, Console(width=140))
    return result_record(rates, pair[1].name, what="llm", env=title, **settings)
