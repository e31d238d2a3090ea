"""Low-rank adapters: alone, merged, and a population of them over one frozen base."""

import functools
import operator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxscope.agents.llm import cache, fused
from jaxscope.agents.llm.linear import ALL_LINEAR, LoraConfig
from jaxscope.agents.llm.lora import gather, is_adapter, join, merge, split
from jaxscope.agents.llm.model import LanguageModel, linear_layers
from jaxscope.population import Population
from tests.tiny_models import drawn, some_tokens, tiny_config, turn, with_random_adapters

EVERYWHERE = LoraConfig(rank=2, alpha=3.0, targets=ALL_LINEAR)
MEMBERS, ROWS = 3, 2  # rows of each member
logits_of = jax.jit(LanguageModel.logits, static_argnums=0)
close = functools.partial(np.testing.assert_allclose, atol=1e-5, rtol=1e-5)


def one_model(family="qwen3", lora: LoraConfig | None = EVERYWHERE, **others) -> LanguageModel:
    return LanguageModel(tiny_config(family, **{"num_hidden_layers": 2} | others), lora)


@functools.cache
def population():
    """A model of several members, the frozen weights, and random adapters of all members."""
    model = replace(one_model(), members=MEMBERS)
    return model, *split(with_random_adapters(drawn(model)))


def alone(model, base, adapters, member):
    return replace(model, members=None), join(base, gather(adapters, member))


def test_targets_are_those_that_the_model_has():
    config = tiny_config("qwen3")
    names = ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
    assert linear_layers(config) == names
    with pytest.raises(ValueError, match="LoRA targets q_prj: the model's linear layers are down_proj, gate_proj"):
        LanguageModel(config, LoraConfig(targets=("q_prj", "v_proj")))
    everywhere = split(LanguageModel(config, EVERYWHERE).abstract())[1]
    listed = split(LanguageModel(config, replace(EVERYWHERE, targets=names)).abstract())[1]
    assert jax.tree.structure(everywhere) == jax.tree.structure(listed)
    chosen = split(LanguageModel(config, LoraConfig(targets=("o_proj", "up_proj"))).abstract())[1]
    assert list(chosen["layers"]["0"]) == ["mlp", "self_attn"]
    assert [list(module) for module in chosen["layers"]["0"].values()] == [["up_proj"], ["o_proj"]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank = 0"),
        ({"alpha": 0.0}, "alpha = 0.0"),
        ({"targets": ()}, "at least one"),
        ({"targets": "q_proj"}, "must be a tuple"),
        ({"targets": ("q_proj", "q_proj")}, "once"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        LoraConfig(**settings)


def test_fresh_adapters_change_nothing_and_differ_from_member_to_member():
    plain = one_model(lora=None)
    many = replace(plain, lora=LoraConfig(rank=2, targets=("k_proj", "down_proj")), members=MEMBERS)
    weights, params = (model.init(jax.random.key(5)) for model in (plain, many))
    shared, adapters = split(params)
    jax.tree.map(np.testing.assert_array_equal, shared, weights)
    tokens, lengths = some_tokens(MEMBERS, 5)
    np.testing.assert_array_equal(logits_of(many, params, tokens, lengths), logits_of(plain, weights, tokens, lengths))
    for path, leaf in jax.tree_util.tree_leaves_with_path(adapters):
        zero = path[-1].key == "lora_B"
        assert zero == (not np.any(leaf))
        assert zero or len({member.tobytes() for member in np.asarray(leaf)}) == MEMBERS
        # Nor do two layers begin alike.
        assert zero or len({layer.tobytes() for layer in np.asarray(leaf[0])}) == leaf.shape[1]


def test_split_and_join_are_inverse_and_disjoint():
    params = one_model().abstract()
    base, adapters = split(params)
    assert jax.tree.structure(join(base, adapters)) == jax.tree.structure(params)
    assert all(is_adapter(path) for path, _ in jax.tree_util.tree_leaves_with_path(adapters))
    assert not any(is_adapter(path) for path, _ in jax.tree_util.tree_leaves_with_path(base))
    assert split(base)[1] == {}
    with pytest.raises(ValueError, match="a leaf in common"):
        join(params, adapters)


@pytest.mark.parametrize("family", ["llama", "olmo3"])
def test_merged_weights_compute_the_same(family):
    model = one_model(family, num_hidden_layers=4)
    params = with_random_adapters(drawn(model))
    tokens, lengths = some_tokens(2, 6)
    merged = merge(params, EVERYWHERE.scale)
    plain = replace(model, lora=None)
    assert jax.tree.structure(merged) == jax.tree.structure(plain.abstract())
    with_adapters = logits_of(model, params, tokens, lengths)
    close(logits_of(plain, merged, tokens, lengths), with_adapters, atol=1e-4, rtol=1e-4)
    assert np.abs(with_adapters - logits_of(plain, split(params)[0], tokens, lengths)).max() > 0.1


def test_what_cannot_be_merged_is_refused():
    model, base, adapters = population()
    params = join(base, adapters)
    with pytest.raises(ValueError, match="gather one member first"):
        merge(params, 1.0)
    one, params = alone(model, base, adapters, 0)
    with pytest.raises(ValueError, match="merge first, then fuse"):
        merge(fused.fuse(one, params)["layers"][0], 1.0)


def test_merging_keeps_the_precision_of_the_weights():
    params = {"q_proj": {"weight": jnp.ones((3, 2), jnp.bfloat16), "lora": {"lora_A": jnp.ones((1, 2))}}}
    params["q_proj"]["lora"]["lora_B"] = jnp.full((3, 1), 0.5)
    merged = merge(params, 2.0)["q_proj"]["weight"]
    assert merged.dtype == jnp.bfloat16
    np.testing.assert_array_equal(merged, 2.0)


def test_members_of_a_population_compute_what_each_does_alone():
    """Training's pass: values, and gradients of the adapters."""
    model, base, adapters = population()
    tokens, lengths = some_tokens(MEMBERS * ROWS, 6)

    def loss(adapters, model, tokens, lengths, weight):
        found = model.log_probs(join(base, adapters), tokens, lengths)
        return jnp.sum(weight * found.log_prob), found

    weight = jnp.asarray(np.random.default_rng(1).normal(size=(MEMBERS * ROWS, 5)), jnp.float32)
    gradient = jax.jit(jax.grad(loss, has_aux=True), static_argnums=1)
    together, found = gradient(adapters, model, tokens, lengths, weight)
    assert jax.tree.structure(together) == jax.tree.structure(adapters)
    for member in range(MEMBERS):
        one, _ = alone(model, base, adapters, member)
        mine = slice(member * ROWS, (member + 1) * ROWS)
        own, own_found = gradient(gather(adapters, member), one, tokens[mine], lengths[mine], weight[mine])
        jax.tree.map(close, jax.tree.map(operator.itemgetter(mine), found), own_found)
        jax.tree.map(functools.partial(close, atol=1e-4), gather(together, member), own)
    # Of the weights there is none, of every adapter there is one.
    assert all(np.any(leaf) for leaf in jax.tree.leaves(together))


def test_a_member_for_each_row():
    model, base, adapters = population()
    tokens, lengths = some_tokens(5, 6)
    members = jnp.asarray([2, 0, 0, 1, 2])
    one_each = replace(model, members=5)
    logits = logits_of(one_each, join(base, gather(adapters, members)), tokens, lengths)
    for row, member in enumerate(members.tolist()):
        one, params = alone(model, base, adapters, member)
        close(logits[row : row + 1], logits_of(one, params, tokens[row : row + 1], lengths[row : row + 1]))
    with pytest.raises(ValueError, match="5 rows cannot be 3 blocks"):
        logits_of(model, join(base, adapters), tokens, lengths)


def test_members_generate_what_each_does_alone():
    model, base, adapters = population()
    tokens, counts = some_tokens(MEMBERS * ROWS, 6)
    generated = jax.jit(turn, static_argnums=0)
    heard, last, written = generated(model, join(base, adapters), tokens, counts)
    differing = set()
    for member in range(MEMBERS):
        one, params = alone(model, base, adapters, member)
        mine = slice(member * ROWS, (member + 1) * ROWS)
        own_heard, own_last, own = generated(one, params, tokens[mine], counts[mine])
        close(heard[mine], own_heard, atol=1e-4)
        close(last[mine], own_last, atol=1e-4)
        np.testing.assert_array_equal(written.tokens[mine], own.tokens)
        differing.add(np.asarray(own.tokens).tobytes())
    assert len(differing) > 1


def test_fused_projections_keep_their_adapters_apart():
    model = one_model("llama")  # with biases
    params = with_random_adapters(drawn(model))
    tokens, _ = some_tokens(2, 4)
    counts = jnp.asarray([4, 3])
    start = cache.empty(model, 2, 8)

    @jax.jit
    def unrolled(params):
        return cache.read_unrolled(model, fused.fuse(model, params), start, tokens, counts)

    plain, hidden = jax.jit(cache.read, static_argnums=0)(model, params, start, tokens, counts)
    joined, fused_hidden = unrolled(params)
    close(hidden, fused_hidden)
    for memory, other in zip(plain.memory, joined.memory, strict=True):
        jax.tree.map(close, memory, other)
    # The three adapters of one product: each has an effect of its own there.
    for name in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"):
        without = jax.tree_util.tree_map_with_path(
            lambda path, leaf, name=name: leaf * 0 if is_adapter(path) and path[-3].key == name else leaf, params
        )
        _, changed = unrolled(without)
        assert np.abs(changed - fused_hidden).max() > 1e-3, name


def test_low_precision_stays_low():
    model = replace(one_model(), compute="bfloat16")
    params = with_random_adapters(drawn(model))
    tokens, lengths = some_tokens(2, 4)
    hidden = jax.eval_shape(model.hidden, params, tokens, lengths)
    assert hidden.dtype == jnp.bfloat16
    jaxpr = str(jax.make_jaxpr(model.hidden)(params, tokens, lengths))
    products = [line for line in jaxpr.splitlines() if "dot_general[" in line]
    assert len(products) > 14
    # Products are of bfloat16 throughout, adapters' too.
    assert not [line for line in products if ":bf16" not in line]
    start = cache.empty(model, 2, 8)
    read, hidden = jax.eval_shape(functools.partial(cache.read, model), params, start, tokens, lengths)
    assert {leaf.dtype for leaf in jax.tree.leaves(read.memory)} == {jnp.dtype(jnp.bfloat16)}
    assert hidden.dtype == jnp.bfloat16


def test_an_optimiser_step_changes_adapters_only():
    model, base, adapters = population()
    before = jax.tree.map(np.array, base)
    tokens, lengths = some_tokens(MEMBERS, 6)
    tx = optax.adamw(1e-2)

    @functools.partial(jax.jit, donate_argnums=(1, 2))
    def step(base, adapters, state):
        def loss(adapters):
            return -jnp.sum(model.log_probs(join(base, adapters), tokens, lengths).log_prob)

        updates, state = tx.update(jax.grad(loss)(adapters), state, adapters)
        return optax.apply_updates(adapters, updates), state

    start = jax.tree.map(jnp.array, adapters)
    moved, state = step(base, start, tx.init(adapters))
    jax.tree.map(np.testing.assert_array_equal, base, before)
    assert all(np.any(new != old) for new, old in zip(*map(jax.tree.leaves, (moved, adapters)), strict=True))
    # The optimiser remembers nothing of the base.
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) <= 1 + 2 * sum(a.size for a in jax.tree.leaves(adapters))


def test_adapters_are_members_of_a_population():
    model, base, adapters = population()
    members = [gather(adapters, member) for member in range(MEMBERS)]
    full = Population.stack(members)
    jax.tree.map(np.testing.assert_array_equal, full.members[0], adapters)
    jax.tree.map(np.testing.assert_array_equal, full.gather(jnp.asarray(1)), members[1])
    pool = Population.create(members[0], 2)
    for member in members:
        pool = jax.jit(Population.push)(pool, member)
    tokens, lengths = some_tokens(4, 5)
    ids = jnp.asarray([0, 1])  # the first slot was taken over by the third member
    playing = replace(model, members=2)
    logits = logits_of(playing, join(base, pool.gather(ids)), tokens, lengths)
    for block, member in enumerate((2, 1)):
        one, params = alone(model, base, adapters, member)
        mine = slice(2 * block, 2 * block + 2)
        close(logits[mine], logits_of(one, params, tokens[mine], lengths[mine]))
