"""Qwen3.5 against transformers, and its linear attention against itself in its other forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM, Qwen3_5ForCausalLM

from jaxscope.agents.llm import cache, delta_net, fused, generate
from jaxscope.agents.llm.config import from_hugging_face, to_hugging_face
from jaxscope.agents.llm.linear import Build, LoraConfig
from jaxscope.agents.llm.lora import is_adapter, merge
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.sampling import Sampling

VOCAB = 61
TINY = {
    "model_type": "qwen3_5_text",
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "full_attention_interval": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
#: More than two chunks; less than one; one token.
LENGTHS = np.array([150, 37, 1])
TOKENS = np.random.default_rng(0).integers(0, VOCAB, (3, 150))
VALID = np.arange(150)[None] < LENGTHS[:, None]
SHORT = (jnp.asarray(TOKENS[:1, :5]), jnp.asarray([5]))

LOGITS = jax.jit(LanguageModel.logits, static_argnums=0)
LISTEN = jax.jit(generate.listen, static_argnums=0)


def reference(**changes):
    """A random model of transformers."""
    fields = TINY | changes
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config).eval()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=rng))
    return model


def as_params(named, period: int):
    """Tensors by the names of the reference, nested and stacked."""
    leaves: dict = {}
    for name, tensor in named:
        path = name.removeprefix("model.").split(".")
        if path[0] == "layers":
            path[1] = str(int(path[1]) % period)
        leaves.setdefault(tuple(path), []).append(jnp.asarray(tensor.detach().numpy()))
    params: dict = {}
    for path, found in leaves.items():
        inner = params
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = jnp.stack(found) if path[0] == "layers" else found[0]
    return params


def both(**changes):
    theirs = reference(**changes)
    ours = LanguageModel(from_hugging_face(theirs.config.to_dict()))
    return theirs, ours, as_params(theirs.named_parameters(), ours.config.period)


@pytest.fixture(scope="module")
def tiny():
    return both()


def their_logits(model) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor(TOKENS), attention_mask=torch.tensor(VALID.astype(int))).logits.numpy()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attention_bias": True, "tie_word_embeddings": True, "linear_conv_kernel_dim": 3, "hidden_act": "gelu"},
        {
            "num_hidden_layers": 3,
            "layer_types": ["full_attention", "linear_attention", "linear_attention"],
            "linear_num_key_heads": 4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
        },
    ],
    ids=["plain", "others", "without a period"],
)
def test_logits_are_those_of_transformers(changes):
    theirs, ours, params = both(**changes)
    shapes = functools.partial(jax.tree.map, jnp.shape)
    assert shapes(params) == shapes(ours.abstract())
    found = np.asarray(LOGITS(ours, params, jnp.asarray(TOKENS), jnp.asarray(LENGTHS)))
    np.testing.assert_allclose(found[VALID], their_logits(theirs)[VALID], atol=1e-4, rtol=1e-4)


def test_gradients_are_those_of_transformers(tiny):
    theirs, ours, params = tiny
    share = np.random.default_rng(1).uniform(size=(3, 149)).astype(np.float32) * VALID[:, 1:]

    def loss(params):
        return jnp.sum(ours.log_probs(params, jnp.asarray(TOKENS), jnp.asarray(LENGTHS)).log_prob * share) / 100

    found = jax.jit(jax.grad(loss))(params)
    logits = theirs(torch.tensor(TOKENS), attention_mask=torch.tensor(VALID.astype(int))).logits
    chosen = torch.log_softmax(logits[:, :-1], -1).gather(-1, torch.tensor(TOKENS)[:, 1:, None])[..., 0]
    theirs.zero_grad()
    ((chosen * torch.tensor(share)).sum() / 100).backward()
    expected = as_params(((name, p.grad) for name, p in theirs.named_parameters()), ours.config.period)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 * max(1.0, float(jnp.abs(b).max())), err_msg=str(path))


def ragged(lengths):
    """What is left of each row in turn: some tokens for some rows, at times none or one."""
    at = np.zeros(len(lengths), int)
    for widths in ((70, 20, 0), (1, 0, 1), (9, 16, 0), (70, 1, 0)):
        counts = np.minimum(widths, lengths - at)
        chunk = np.zeros((len(lengths), 1 if max(widths) == 1 else 70), int)
        for row, (start, count) in enumerate(zip(at, counts, strict=True)):
            chunk[row, :count] = TOKENS[row, start : start + count]
        yield jnp.asarray(chunk), jnp.asarray(counts)
        at = at + counts
    assert (at == lengths).all()


def test_reading_in_ragged_chunks_is_reading_at_once(tiny):
    _, ours, params = tiny
    speaker = generate.begin(ours, 3, 220)
    for tokens, counts in ragged(LENGTHS):
        speaker = LISTEN(ours, params, speaker, tokens, counts)
    at_once = LOGITS(ours, params, jnp.asarray(TOKENS), jnp.asarray(LENGTHS))
    np.testing.assert_allclose(speaker.logits, at_once[jnp.arange(3), LENGTHS - 1], atol=1e-4, rtol=1e-4)
    assert not speaker.cache.full


@pytest.mark.parametrize("length", [1, 3])
def test_tokens_that_do_not_fit_change_no_memory(tiny, length):
    _, ours, params = tiny
    read = jax.jit(cache.read, static_argnums=0)
    tokens, counts = jnp.asarray(TOKENS[:, :3]), jnp.asarray([3, 2, 1])
    before, _ = read(ours, params, cache.empty(ours, 3, 3), tokens, counts)
    after, _ = read(ours, params, before, tokens[:, :length], jnp.minimum(counts, length))
    assert after.full
    layers = [i for i, kind in enumerate(ours.config.layer_types) if kind == "linear_attention"]
    for layer in layers:
        jax.tree.map(np.testing.assert_array_equal, after.memory[layer], before.memory[layer])
        assert all(jnp.any(leaf[row] != 0) for leaf in after.memory[layer] for row in range(3))


def test_the_convolution_remembers_the_last_tokens_of_each_row():
    layer = delta_net.ShortConvolution(2, 4, Build(std=0.02))
    before = -1.0 - jnp.arange(6.0).reshape(1, 2, 3) * jnp.ones((4, 1, 1))
    x = jnp.arange(1.0, 6.0)[None, :, None] * jnp.ones((4, 1, 2))
    _, after = layer(x, before, jnp.asarray([0, 1, 3, 5]))
    first = [[-1, -2, -3], [-2, -3, 1], [1, 2, 3], [3, 4, 5]]
    np.testing.assert_array_equal(after[:, 0], first)


def test_generated_tokens_are_those_of_transformers_and_log_probs_those_computed_anew(tiny):
    theirs, ours, params = tiny
    heard, budgets = np.array([68, 9, 1]), np.array([20, 20, 11])
    tokens = jnp.asarray(TOKENS[:, :70])
    speaker = LISTEN(ours, params, generate.begin(ours, 3, 220), tokens, jnp.asarray(heard))
    speak = jax.jit(generate.speak, static_argnums=(0, 4, 5, 6))
    weights = jax.jit(fused.fuse, static_argnums=0)(ours, params)
    _, turn = speak(ours, weights, speaker, jax.random.key(0), Sampling(0.0), (), 20, jnp.asarray(budgets))
    whole = np.zeros((3, 150), int)
    for row, (start, count) in enumerate(zip(heard, budgets, strict=True)):
        prompt = torch.tensor(TOKENS[row : row + 1, :start])
        written = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False, pad_token_id=0
        )
        np.testing.assert_array_equal(turn.tokens[row, :count], written[0, start:])
        whole[row, : start + count] = written[0]
    anew = jax.nn.log_softmax(LOGITS(ours, params, jnp.asarray(whole), jnp.asarray(heard + budgets)))
    for row, (start, count) in enumerate(zip(heard, budgets, strict=True)):
        expected = [anew[row, at - 1, whole[row, at]] for at in range(start, start + count)]
        np.testing.assert_allclose(turn.raw_log_probs[row, :count], expected, atol=5e-4, rtol=0)


@settings(max_examples=4, deadline=None)
@given(
    length=st.integers(1, 200),
    rows=st.integers(1, 3),
    key_heads=st.integers(1, 3),
    group=st.integers(1, 3),
    sizes=st.tuples(st.integers(1, 16), st.integers(1, 16)),
    seed=st.integers(0, 2**16),
    fading=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_chunks_are_tokens_one_by_one(length, rows, key_heads, group, sizes, seed, fading):
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    heads, (k, v) = key_heads * group, sizes
    # Keys that are much alike depend on each other most.
    query, key = normal(rows, length, key_heads, k), normal(rows, length, key_heads, k) + 2.0
    value, state = normal(rows, length, heads, v), normal(rows, heads, k, v)
    decay = -fading * jnp.asarray(rng.exponential(size=(rows, length, heads)), jnp.float32)
    strength = jnp.asarray(rng.uniform(size=(rows, length, heads)), jnp.float32)
    read, after = jax.jit(delta_net.in_chunks)(query, key, value, decay, strength, state)

    def one(state, here):
        query, key, value, decay, strength = here
        read, state = delta_net.one_token(query, key, value, decay, strength, state)
        return state, read

    along = tuple(jnp.swapaxes(leaf, 0, 1) for leaf in (query, key, value, decay, strength))
    expected_after, expected = jax.jit(lambda state, along: jax.lax.scan(one, state, along))(state, along)
    np.testing.assert_allclose(read, jnp.swapaxes(expected, 0, 1), atol=2e-4, rtol=2e-4)
    np.testing.assert_allclose(after, expected_after, atol=2e-4, rtol=2e-4)


def test_memory_of_the_backward_pass_grows_with_tokens_not_their_square():
    def needed(length):
        shapes = [(1, length, 2, 8), (1, length, 2, 8), (1, length, 2, 8), (1, length, 2), (1, length, 2), (1, 2, 8, 8)]
        inputs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        gradient = jax.grad(lambda *inputs: jnp.sum(delta_net.in_chunks(*inputs)[0]), argnums=tuple(range(6)))
        found = jax.jit(gradient).lower(*inputs).compile().memory_analysis()
        assert found is not None
        return found.temp_size_in_bytes

    assert needed(8192) < 2.2 * needed(4096)


@pytest.mark.parametrize(
    ("name", "value"),
    {
        "vocab_size": 62,
        "hidden_size": 40,
        "intermediate_size": 40,
        "num_hidden_layers": 6,
        "full_attention_interval": 4,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "linear_conv_kernel_dim": 3,
        "linear_key_head_dim": 4,
        "linear_value_head_dim": 6,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 2,
    }.items(),
)
def test_sizes_are_those_of_the_weights(name, value):
    """Also that transformers gives the weights the same shapes."""
    ours = LanguageModel(from_hugging_face(TINY | {name: value}))
    shapes = functools.partial(jax.tree.map, jnp.shape)
    assert shapes(ours.abstract()) != shapes(LanguageModel(from_hugging_face(TINY)).abstract())
    theirs = reference(**{name: value})
    assert shapes(ours.abstract()) == shapes(as_params(theirs.named_parameters(), ours.config.period))


@pytest.mark.parametrize(
    "changes",
    [
        {"rms_norm_eps": 0.1},
        {"rope_theta": 50.0},
        {"partial_rotary_factor": 0.5},
        {"linear_num_key_heads": 4, "linear_key_head_dim": 4},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_numbers_that_are_no_sizes_count(tiny, changes):
    _, ours, params = tiny
    other = LanguageModel(from_hugging_face(TINY | changes))
    assert jnp.abs(LOGITS(ours, params, *SHORT) - LOGITS(other, params, *SHORT)).max() > 1e-3


LARGE = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "image_token_id": 248056,
    "video_token_id": 248057,
    "vision_start_token_id": 248053,
    "vision_end_token_id": 248054,
    "tie_word_embeddings": False,
    "transformers_version": "4.57.0.dev0",
    "vision_config": {"depth": 27, "model_type": "qwen3_5", "hidden_size": 1152},
    "text_config": {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_output_gate": True,
        "dtype": "bfloat16",
        "eos_token_id": 248044,
        "full_attention_interval": 4,
        "head_dim": 256,
        "hidden_act": "silu",
        "hidden_size": 4096,
        "initializer_range": 0.02,
        "intermediate_size": 12288,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 8,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": 262144,
        "mlp_only_layers": [],
        "model_type": "qwen3_5_text",
        "mtp_num_hidden_layers": 1,
        "mtp_use_dedicated_embeddings": False,
        "num_attention_heads": 16,
        "num_hidden_layers": 32,
        "num_key_value_heads": 4,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "mrope_interleaved": True,
            "mrope_section": [11, 11, 10],
            "partial_rotary_factor": 0.25,
            "rope_theta": 10000000,
            "rope_type": "default",
        },
        "use_cache": True,
        "vocab_size": 248320,
    },
}


def test_the_text_part_of_a_model_that_sees():
    config = from_hugging_face(LARGE)
    assert (config.family, config.num_hidden_layers, config.period, config.head_dim) == ("qwen3_5", 32, 4, 256)
    assert config.rope("full_attention").partial_rotary_factor == 0.25
    assert config.rope("full_attention").rope_theta == 1e7
    assert from_hugging_face(LARGE["text_config"]) == config
    assert from_hugging_face(to_hugging_face(config)) == config
    count = sum(leaf.size for leaf in jax.tree.leaves(LanguageModel(config).abstract()))
    with torch.device("meta"):
        theirs = AutoModelForCausalLM.from_config(AutoConfig.for_model(**LARGE["text_config"]))
    assert count == sum(parameter.numel() for parameter in theirs.parameters())


def test_tied_embeddings_are_named_beside_the_text():
    fields = LARGE | {"tie_word_embeddings": True, "text_config": LARGE["text_config"] | {"tie_word_embeddings": False}}
    assert from_hugging_face(fields).tie_word_embeddings
    inside = {name: value for name, value in fields.items() if name != "tie_word_embeddings"}
    assert not from_hugging_face(inside).tie_word_embeddings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attn_output_gate": False}, "attn_output_gate = False"),
        ({"output_gate_type": "sigmoid"}, "output_gate_type = 'sigmoid'"),
        ({"mamba_ssm_dtype": "bfloat16"}, "mamba_ssm_dtype = 'bfloat16'"),
        ({"mlp_only_layers": [2]}, r"mlp_only_layers = \[2\]"),
        ({"num_experts": 8}, "num_experts = 8"),
        ({"linear_num_key_heads": 3}, "linear_num_value_heads = 4 must be a multiple of linear_num_key_heads = 3"),
        ({"linear_key_head_dim": 8.5}, "linear_key_head_dim = 8.5"),
        ({"full_attention_interval": 0}, "full_attention_interval = 0"),
        ({"partial_rotary_factor": 0}, "partial_rotary_factor = 0"),
    ],
)
def test_what_is_not_supported_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        from_hugging_face(TINY | changes)
    around = {"model_type": "qwen3_5", "text_config": TINY, "vision_config": {}, "quantization_config": {"bits": 4}}
    with pytest.raises(ValueError, match="quantization_config"):
        from_hugging_face(around)


def test_transformers_builds_the_same_model_from_what_is_written(tiny):
    theirs, ours, _ = tiny
    written = AutoConfig.for_model(**to_hugging_face(ours.config))
    written._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(written).eval()
    model.load_state_dict(theirs.state_dict())
    assert isinstance(model, Qwen3_5ForCausalLM)
    np.testing.assert_array_equal(their_logits(model), their_logits(theirs))


def test_adapters_of_a_population_on_linear_attention():
    lora = LoraConfig(rank=2, targets=("in_proj_qkv", "in_proj_a", "out_proj", "q_proj"))
    model = LanguageModel(from_hugging_face(TINY | {"num_hidden_layers": 2}), lora, members=2)
    rng = np.random.default_rng(2)
    params = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape) / 3, leaf.dtype), model.abstract())
    tokens, lengths = jnp.asarray(TOKENS[:2, :5]), jnp.asarray([5, 3])
    speaker = LISTEN(model, params, generate.begin(model, 2, 8), tokens[:, :4], jnp.minimum(lengths, 4))
    weights = jax.jit(fused.fuse, static_argnums=0)(model, params)
    read = jax.jit(cache.read_unrolled, static_argnums=0)
    after, hidden = read(model, weights, speaker.cache, tokens[:, 4:], jnp.asarray([1, 0]))
    assert (after.lengths == lengths).all()
    found = [model.predict(params, hidden)[0], speaker.logits[1]]

    @jax.jit
    def alone(params, member):
        own = jax.tree_util.tree_map_with_path(lambda path, a: a[member] if is_adapter(path) else a, params)
        at = lengths[member]
        whole = LanguageModel(model.config).logits(merge(own, lora.scale), tokens[member][None], at[None])
        return whole[0, at - 1]

    for member in range(2):
        np.testing.assert_allclose(found[member], alone(params, member), atol=1e-4, rtol=1e-4)
