"""Our language models compute what transformers' do: logits, gradients and greedy continuations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from llm_models import MODELS, raw, texts
from llm_reference import Pair, build, converted, pair, their_logits

from jaxscope.agents.llm import fused, generate
from jaxscope.agents.llm.config import from_hugging_face, to_hugging_face
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling

GIVEN = texts()
logits = jax.jit(LanguageModel.logits, static_argnums=0)


@pytest.fixture(scope="module", params=MODELS)
def both(request) -> Pair:
    return pair(request.param)


def close(ours, theirs, tolerance: float) -> None:
    """Equal up to a share of the largest number."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * np.abs(theirs).max())


def test_shapes_are_those_of_the_files(both):
    of = functools.partial(jax.tree.map, jnp.shape)
    assert of(both.ours.abstract()) == of(both.params)


def test_logits(both):
    ours = logits(both.ours, both.params, GIVEN.tokens, GIVEN.lengths)
    with torch.no_grad():
        theirs = their_logits(both.theirs, GIVEN).numpy()
    close(np.asarray(ours)[GIVEN.valid], theirs[GIVEN.valid], 1e-4)


def test_gradients(both):
    """Of a weighted sum of the tokens' log-probabilities and entropies at a temperature, for every parameter."""
    weights = np.random.default_rng(1).normal(size=(2, *GIVEN.tokens[:, 1:].shape)).astype(np.float32)
    weights *= GIVEN.valid[None, :, 1:]

    @jax.jit
    def of_ours(params):
        found = both.ours.log_probs(params, GIVEN.tokens, GIVEN.lengths, temperature=0.7)
        return jnp.sum(found.log_prob * weights[0] + found.entropy * weights[1])

    ours, gradients = jax.value_and_grad(of_ours)(both.params)
    log_probs = torch.log_softmax(their_logits(both.theirs, GIVEN)[:, :-1] / 0.7, dim=-1)
    chosen = torch.gather(log_probs, -1, torch.tensor(GIVEN.tokens[:, 1:, None], dtype=torch.long))[..., 0]
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    theirs = (chosen * torch.tensor(weights[0]) + entropy * torch.tensor(weights[1])).sum()
    both.theirs.zero_grad()
    theirs.backward()
    np.testing.assert_allclose(ours, theirs.item(), rtol=1e-4)
    expected = converted(both.ours, {name: leaf.grad for name, leaf in both.theirs.named_parameters()})
    assert jax.tree.structure(expected) == jax.tree.structure(gradients)
    jax.tree.map(lambda ours, theirs: close(ours, theirs, 2e-4), gradients, expected)


def test_greedy_continuations(both):
    """Of rows of different lengths at once; transformers is asked row by row."""
    given, limit = texts((20, 3)), 16
    speaker = generate.begin(both.ours, 2, 20 + limit)
    speaker = jax.jit(generate.listen, static_argnums=0)(both.ours, both.params, speaker, *given)
    speak = jax.jit(generate.speak, static_argnums=(0, 4, 5, 6))
    weights = fused.fuse(both.ours, both.params)
    _, turn = speak(both.ours, weights, speaker, jax.random.key(0), Sampling(temperature=0.0), (), limit)
    for row, (tokens, length) in enumerate(zip(given.tokens, given.lengths, strict=True)):
        ids = torch.tensor(tokens[None, :length], dtype=torch.long)
        whole = both.theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=limit, do_sample=False, pad_token_id=0
        )
        assert np.asarray(turn.tokens)[row].tolist() == whole[0, length:].tolist()


def test_config_files_hold_all_that_matters(both):
    """Ours reads back what it wrote, and so does transformers: the same weights give the same logits."""
    written = to_hugging_face(both.ours.config)
    assert from_hugging_face(written) == both.ours.config
    again = build(written)
    again.load_state_dict(both.theirs.state_dict())
    with torch.no_grad():
        assert torch.equal(their_logits(again, GIVEN), their_logits(both.theirs, GIVEN))
    assert from_hugging_face(again.config.to_dict()) == both.ours.config


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "olmo3"])
def test_absent_fields_mean_what_they_do_in_transformers(name):
    needed = ("model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
    needed += ("num_attention_heads", "num_key_value_heads", "max_position_embeddings")
    bare = {field: raw(name)[field] for field in needed} | {"pad_token_id": None}
    full = build(bare).config.to_dict() | {"bos_token_id": None, "eos_token_id": None}
    assert from_hugging_face(bare) == from_hugging_face(full)


@pytest.mark.parametrize("remat", ["products", "layers"])
def test_what_is_computed_anew_in_the_backward_pass_is_the_same(remat):
    ours, params = pair("olmo3")[1:]

    def gradients(model, keep_logits):
        def loss(params):
            return jnp.sum(model.log_probs(params, GIVEN.tokens, GIVEN.lengths, keep_logits=keep_logits).log_prob)

        return jax.jit(jax.grad(loss))(params)

    plain = gradients(ours, keep_logits=True)
    jax.tree.map(
        lambda a, b: close(a, b, 1e-5), gradients(LanguageModel(ours.config, remat=remat), keep_logits=False), plain
    )
