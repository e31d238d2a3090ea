"""Tiny language models of transformers, with weights that matter, and the same weights as ours."""

from __future__ import annotations

import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import warnings
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from llm_models import Texts, raw

from jaxscope.agents.llm.config import from_hugging_face
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling
from jaxscope.types import PyTree

# Both warn of deprecated code of their own while they are imported.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.generation.logits_process import (
        LogitsProcessorList,
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )


class Pair(NamedTuple):
    """The same model twice."""

    theirs: Any
    ours: LanguageModel
    params: PyTree


def build(config_json: dict[str, Any]) -> Any:
    """transformers' model of a config.json, in float32, with random weights that make every part of it matter."""
    fields = {name: value for name, value in config_json.items() if name != "model_type"}
    config = AutoConfig.for_model(config_json["model_type"], **fields)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            # Norms are about 1.
            around = 1.0 if parameter.ndim == 1 else 0.0
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3 + around)
    return model


def pair(name: str) -> Pair:
    """A model of `MODELS`."""
    theirs = build(raw(name))
    ours = LanguageModel(from_hugging_face(theirs.config.to_dict()))
    return Pair(theirs, ours, converted(ours, dict(theirs.named_parameters())))


def converted(model: LanguageModel, tensors: dict[str, Any]) -> PyTree:
    """Tensors under transformers' names, weights or their gradients, as a tree of our weights."""
    params: dict[str, Any] = {}
    period = model.config.period
    arrays = {name.removeprefix("model."): tensor.detach().numpy() for name, tensor in tensors.items()}
    for name, array in arrays.items():
        path = name.split(".")
        if path[0] == "layers":
            layer, rest = int(path[1]), path[2:]
            if layer >= period:
                continue
            layers = range(layer, model.config.num_hidden_layers, period)
            of_places = [arrays[".".join(["layers", str(i), *rest])] for i in layers]
            path, array = ["layers", str(layer), *rest], np.stack(of_places)
        here = params
        for part in path[:-1]:
            here = here.setdefault(part, {})
        here[path[-1]] = jnp.asarray(array)
    return params


def their_logits(theirs: Any, given: Texts) -> Any:
    """transformers' logits of right-padded rows, a tensor that knows its gradient."""
    ids, mask = torch.tensor(given.tokens, dtype=torch.long), torch.tensor(given.valid.astype(np.int64))
    return theirs(ids, attention_mask=mask, use_cache=False).logits


def restricted(logits: np.ndarray, sampling: Sampling) -> np.ndarray:
    """What transformers makes of logits before it draws: minus infinity where a token is not kept."""
    steps = [TemperatureLogitsWarper(float(sampling.temperature))]
    steps += [] if sampling.top_k is None else [TopKLogitsWarper(sampling.top_k)]
    steps += [TopPLogitsWarper(sampling.top_p)] if sampling.top_p < 1 else []
    steps += [MinPLogitsWarper(sampling.min_p)] if sampling.min_p > 0 else []
    ids: Any = torch.zeros((len(logits), 1), dtype=torch.long)
    scores: Any = torch.tensor(logits)
    return LogitsProcessorList(steps)(ids, scores).numpy()
