"""Models by name, and back into a folder that transformers loads."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tokenizers
import torch
from transformers import AutoModelForCausalLM

from jaxscope.agents import llm
from jaxscope.agents.llm import lora
from jaxscope.agents.llm.linear import LoraConfig


def test_the_built_in_model_needs_nothing_and_is_small():
    tiny = llm.load("tiny")
    assert tiny.parameters < 1_000_000
    assert tiny.tokenizer.vocab_size == tiny.model.config.vocab_size
    assert tiny.stops == tiny.tokenizer.end_of_turn_ids
    assert {"tiny", "smollm2-135m"} <= set(llm.names())


def folder_with_tokenizer(path, tokens: int):
    tiny = llm.load("tiny")
    vocabulary = {f"t{i}": i for i in range(tokens)}
    text = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="t0"))
    files = {
        "tokenizer.json": text.to_str().encode(),
        "tokenizer_config.json": json.dumps({"eos_token": "t1", "pad_token": "t1"}).encode(),
    }
    llm.save(path, tiny.model, tiny.params, files)
    return tiny


def test_a_saved_model_comes_back_bit_for_bit(tmp_path):
    tiny = folder_with_tokenizer(tmp_path / "model", 288)
    again = llm.load(tmp_path / "model")
    assert again.model == tiny.model
    jax.tree.map(np.testing.assert_array_equal, again.params, tiny.params)


def test_transformers_loads_a_saved_model_and_agrees(tmp_path):
    tiny = folder_with_tokenizer(tmp_path / "model", 288)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32).eval()
    tokens = np.random.default_rng(0).integers(0, 288, (2, 30))
    ours = tiny.model.logits(tiny.params, jnp.asarray(tokens), jnp.asarray([30, 30]))
    with torch.no_grad():
        np.testing.assert_allclose(ours, theirs(torch.tensor(tokens)).logits.numpy(), atol=1e-4)


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    folder_with_tokenizer(tmp_path / "model", 300)
    with pytest.raises(ValueError, match="the tokenizer has 300 tokens, the model a vocabulary of 288"):
        llm.load(tmp_path / "model")


def test_adapters_are_not_forgotten_silently(tmp_path):
    config = LoraConfig(rank=2)
    tiny = llm.load("tiny", lora=config)
    with pytest.raises(ValueError, match="merge them"):
        llm.save(tmp_path / "model", tiny.model, tiny.params)
    merged = lora.merge(tiny.params, config.scale)
    llm.save(tmp_path / "model", llm.load("tiny").model, merged)


def test_a_name_of_nothing_is_refused():
    with pytest.raises(ValueError, match="there is no model 'nothing'"):
        llm.load("nothing")
