"""Our language models compute what transformers' do: logits, gradients and greedy continuations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from llm_models import MODELS, raw, texts
from llm_models import build as build_ours
from llm_reference import Pair, build, converted, pair, their_logits

from jaxscope.agents.llm import fused, generate
from jaxscope.agents.llm.config import from_hugging_face, to_hugging_face
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling

GIVEN = texts()
#: Programs run here once or twice: they need not be fast.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
TEMPERATURE = 0.7


@pytest.fixture(scope="module", params=MODELS)
def both(request) -> Pair:
    return pair(request.param)


#: Of every token's log-probability and entropy, in a loss.
WEIGHTS = np.random.default_rng(1).normal(size=(2, *GIVEN.tokens[:, 1:].shape)).astype(np.float32)
WEIGHTS *= GIVEN.valid[None, :, 1:]


@pytest.fixture(scope="module")
def found(both):
    """Our logits, our loss and its gradients."""

    def loss(params):
        found = both.ours.log_probs(params, *GIVEN, temperature=TEMPERATURE)
        return jnp.sum(found.log_prob * WEIGHTS[0] + found.entropy * WEIGHTS[1])

    def everything(params):
        return both.ours.logits(params, *GIVEN), *jax.value_and_grad(loss)(params)

    return jax.tree.map(np.asarray, jit(everything)(both.params))


def close(ours, theirs, tolerance: float) -> None:
    """Equal up to a share of the largest number."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * np.abs(theirs).max())


def test_shapes_are_those_of_the_files(both):
    of = functools.partial(jax.tree.map, jnp.shape)
    assert of(both.ours.abstract()) == of(both.params)


def test_logits(both, found):
    with torch.no_grad():
        theirs = their_logits(both.theirs, GIVEN).numpy()
    close(found[0][GIVEN.valid], theirs[GIVEN.valid], 1e-4)


def test_gradients(both, found):
    """Of a weighted sum of the tokens' log-probabilities and entropies at a temperature, for every parameter."""
    _, ours, gradients = found
    log_probs = torch.log_softmax(their_logits(both.theirs, GIVEN)[:, :-1] / TEMPERATURE, dim=-1)
    chosen = torch.gather(log_probs, -1, torch.tensor(GIVEN.tokens[:, 1:, None], dtype=torch.long))[..., 0]
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    theirs = (chosen * torch.tensor(WEIGHTS[0]) + entropy * torch.tensor(WEIGHTS[1])).sum()
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
    speaker = jit(generate.listen, static_argnums=0)(both.ours, both.params, speaker, *given)
    speak = jit(generate.speak, static_argnums=(0, 4, 5, 6))
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


def test_what_is_computed_anew_in_the_backward_pass_is_the_same():
    ours, params = build_ours("llama")

    def gradients(model, keep_logits):
        def loss(params):
            return jnp.sum(model.log_probs(params, *GIVEN, keep_logits=keep_logits).log_prob)

        return jit(jax.grad(loss))(params)

    plain = gradients(ours, keep_logits=True)
    for remat in ("products", "layers"):
        anew = gradients(LanguageModel(ours.config, remat=remat), keep_logits=False)
        jax.tree.map(lambda ours, expected: close(ours, expected, 1e-5), anew, plain)
