"""Language models on a mesh of devices compute what they do on one."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from jaxscope import registry
from jaxscope.agents.llm import fused, sharding
from jaxscope.agents.llm.config import FAMILIES
from jaxscope.agents.llm.linear import ALL_LINEAR, LoraConfig
from jaxscope.agents.llm.lora import gather, join, split
from jaxscope.agents.llm.model import LanguageModel
from tests.tiny_models import drawn, some_tokens, tiny_config, turn, with_random_adapters

EVERYWHERE = LoraConfig(rank=2, targets=ALL_LINEAR)
MEMBERS = 2
close = functools.partial(np.testing.assert_allclose, atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def mesh():
    return sharding.mesh(data=2, fsdp=2, tensor=2)


#: Families whose gradients move by this much, beside the largest, when weights are rounded otherwise.
ROUGH = {"qwen3_5": 5e-5}


def close_trees(placed, one, atol=1e-5):
    """Sums are in another order on several devices: differences are seen beside the largest entry."""

    def compare(a, b):
        close(a, b, atol=atol * max(1.0, float(np.abs(b).max())))

    jax.tree.map(compare, placed, one)


def loss(params, model, tokens, lengths):
    """Mean over tokens of the negative log-probability: one denominator for all rows, wherever they are."""
    found = model.log_probs(params, tokens, lengths)
    return -jnp.sum(found.log_prob) / jnp.sum(lengths - 1)


@functools.partial(jax.jit, static_argnums=(1, 4))
def sgd_step(params, model, tokens, lengths, held=lambda params: params):
    """Plain gradient descent, as a wrong factor in gradients would show in it."""
    value, gradient = jax.value_and_grad(loss)(params, model, tokens, lengths)
    stepped = jax.tree.map(lambda leaf, slope: leaf - 0.1 * slope, params, gradient)
    return value, model.logits(params, tokens, lengths), gradient, held(stepped)


@pytest.mark.parametrize("family", registry.names(FAMILIES))
@pytest.mark.parametrize("fuse", [False, True])
def test_every_parameter_matches_one_rule(family, fuse):
    model = LanguageModel(tiny_config(family), EVERYWHERE)
    rules = sharding.table(model)
    tree = jax.eval_shape(functools.partial(fused.fuse, model), model.abstract()) if fuse else model.abstract()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        rule = sharding.rule_for(sharding.name_of(path), rules)  # raises where it is not exactly one
        assert len(rule.axes) <= len(leaf.shape)
    # Every large matrix is divided by something.
    for path, _ in jax.tree_util.tree_leaves_with_path(tree):
        name = sharding.name_of(path)
        if name.endswith("proj.weight") or path[0].key in ("embed_tokens", "lm_head"):
            assert any(sharding.rule_for(name, rules).axes), name


def test_a_name_without_a_rule_or_with_two_is_refused():
    model = LanguageModel(tiny_config("llama"))
    sizes = {"data": 1, "fsdp": 1, "tensor": 1}
    with pytest.raises(ValueError, match=r"layers.self_attn.r_proj.weight matches no rule"):
        sharding.place(model, {"layers": {"0": {"self_attn": {"r_proj": {"weight": jnp.zeros((1, 2, 2))}}}}}, sizes)
    with pytest.raises(ValueError, match="several rules"):
        sharding.rule_for("norm.weight", (*sharding.RULES, sharding.Rule(r"norm\.\w+")))
    with pytest.raises(ValueError, match="fewer dimensions than its rule"):
        sharding.place(model, {"lm_head": {"weight": jnp.zeros(3)}}, sizes)


def test_matrices_lie_where_the_table_says(mesh):
    model = LanguageModel(tiny_config("qwen3"), EVERYWHERE)
    specs = sharding.place(model, model.abstract(), mesh.shape).specs
    attention, mlp = specs["layers"]["0"]["self_attn"], specs["layers"]["0"]["mlp"]
    assert attention["q_proj"]["weight"] == mlp["up_proj"]["weight"] == P(None, "tensor", "fsdp")
    assert attention["o_proj"]["weight"] == mlp["down_proj"]["weight"] == P(None, "fsdp", "tensor")
    assert attention["q_proj"]["lora"] == {"lora_A": P(None, None, "fsdp"), "lora_B": P(None, "tensor", None)}
    assert attention["o_proj"]["lora"] == {"lora_A": P(None, None, "tensor"), "lora_B": P(None, "fsdp", None)}
    assert specs["embed_tokens"]["weight"] == P(None, "fsdp")
    assert specs["lm_head"]["weight"] == P("tensor", "fsdp")
    assert not any(specs["norm"]["weight"])
    # An optimiser's state, gradients and adapters alone lie like the parameters.
    state = jax.eval_shape(optax.adamw(1e-3).init, model.abstract())
    placed = sharding.place(model, state, mesh.shape).specs
    assert placed[0].mu == placed[0].nu == specs
    assert placed[0].count == P()
    grouped = optax.multi_transform({"all": optax.adam(1e-3)}, lambda tree: jax.tree.map(lambda _: "all", tree))
    jax.tree.leaves(sharding.place(model, jax.eval_shape(grouped.init, model.abstract()), mesh.shape).specs)
    assert sharding.place(model, split(model.abstract())[1], mesh.shape).specs == split(specs)[1]
    cache = sharding.place_cache(model, 4, 8, mesh.shape).specs
    assert cache.memory[0].keys == P(("data", "fsdp"), "tensor", None, None)
    assert cache.positions == P(("data", "fsdp"), None)
    assert cache.lengths == P(("data", "fsdp"))


def test_what_is_not_divided_is_reported_or_refused():
    # Three heads of keys and values, in widths that two does divide.
    model = LanguageModel(tiny_config("qwen3", vocab_size=42, num_attention_heads=6, num_key_value_heads=3))
    sizes = {"data": 2, "fsdp": 3, "tensor": 2}
    found = sharding.place(model, model.abstract(), sizes)
    told = str(found)
    assert "layers.self_attn.k_proj.weight: dimension 1 (3 heads) is not divided by tensor = 2" in told
    assert "layers.self_attn.k_proj.weight: dimension 2 (16) is not divided by fsdp = 3" in told
    assert found.specs["layers"]["0"]["self_attn"]["k_proj"]["weight"] == P(None, None, None)
    assert found.specs["layers"]["0"]["self_attn"]["q_proj"]["weight"] == P(None, "tensor", None)
    with pytest.raises(ValueError, match=r"k_proj.weight: dimension 1 \(3 heads\) is not divided by tensor = 2"):
        sharding.place(model, model.abstract(), sizes, strict=True)
    cache = sharding.place_cache(model, 4, 8, sizes)
    assert "cache.memory.keys: dimension 1 (3) is not divided by tensor = 2" in str(cache)
    assert "cache.lengths: dimension 0 (4) is not divided by data x fsdp = 6" in str(cache)
    with pytest.raises(ValueError, match="not divided by data x fsdp = 6"):
        sharding.place_cache(model, 4, 8, sizes, strict=True)
    even = sharding.place(model, model.abstract(), {"data": 2, "fsdp": 2, "tensor": 3}, strict=True)
    assert str(even) == "every dimension is divided"


def test_a_mesh_needs_its_devices():
    with pytest.raises(ValueError, match=r"data 4 x fsdp 4 x tensor 1 = 16 devices: there are 8"):
        sharding.mesh(data=4, fsdp=4)
    with pytest.raises(ValueError, match="at least 1 device"):
        sharding.mesh(tensor=0)
    assert sharding.mesh(tensor=4).shape == {"data": 1, "fsdp": 1, "tensor": 4}


@pytest.mark.parametrize("family", registry.names(FAMILIES))
def test_logits_gradients_and_a_step_agree_with_one_device(family, mesh):
    model = LanguageModel(tiny_config(family))
    params = drawn(model)
    tokens, lengths = some_tokens(4, 6)
    placement = sharding.place(model, params, mesh.shape, strict=True)
    rows = sharding.of_rows(mesh)
    placed = placement.put(params, mesh)
    assert len(placed["layers"]["0"]["mlp"]["up_proj"]["weight"].sharding.device_set) == 8
    shard = placed["layers"]["0"]["mlp"]["up_proj"]["weight"].addressable_shards[0].data.shape
    assert shard == (4 // model.config.period, 12, 8)
    held = functools.partial(placement.hold, mesh=mesh)
    many = sgd_step(placed, model, *jax.device_put((tokens, lengths), rows), held)
    one = sgd_step(params, model, tokens, lengths)
    close_trees(many, one, ROUGH.get(family, 1e-5))
    # What comes out lies like what went in.
    same = jax.tree.map(lambda a, b: a.sharding.is_equivalent_to(b.sharding, a.ndim), many[3], placed)
    assert jax.tree.all(same)


def test_generation_agrees_with_one_device(mesh):
    model = LanguageModel(tiny_config("llama"))
    params = drawn(model)
    tokens, counts = some_tokens(4, 6)
    placement = sharding.place(model, params, mesh.shape, strict=True)
    held = functools.partial(sharding.place_cache(model, 4, 16, mesh.shape, strict=True).hold, mesh=mesh)
    generated = jax.jit(turn, static_argnums=(0, 4))
    one = generated(model, params, tokens, counts)
    rows = jax.device_put((tokens, counts), sharding.of_rows(mesh))
    many = generated(model, placement.put(params, mesh), *rows, held)
    np.testing.assert_array_equal(many[2].tokens, one[2].tokens)
    close_trees(many, one)


def test_a_population_over_several_devices_agrees_with_one(mesh):
    lora = LoraConfig(rank=2, targets=("k_proj", "down_proj"))
    model = replace(LanguageModel(tiny_config("qwen3", num_hidden_layers=2), lora), members=MEMBERS)
    base, adapters = split(with_random_adapters(drawn(model)))
    tokens, lengths = some_tokens(4 * MEMBERS, 6)

    @jax.jit
    def step(adapters, base, tokens, lengths):
        value, gradient = jax.value_and_grad(lambda a: loss(join(base, a), model, tokens, lengths))(adapters)
        return value, jax.tree.map(lambda leaf, slope: leaf - 0.1 * slope, adapters, gradient)

    placements = [sharding.place(model, tree, mesh.shape, strict=True) for tree in (adapters, base)]
    placed = [placement.put(tree, mesh) for placement, tree in zip(placements, (adapters, base), strict=True)]
    # A member's adapters are where its rows are.
    first = jax.tree.leaves(placed[0])[0]
    assert first.sharding.spec[0] == "data"
    assert first.addressable_shards[0].data.shape[0] == MEMBERS // 2
    rows = jax.device_put((tokens, lengths), sharding.of_rows(mesh))
    close_trees(step(*placed, *rows), step(adapters, base, tokens, lengths))
    # One member for each row, gathered from the population where it lies.
    members = jnp.arange(4 * MEMBERS)[::-1] % MEMBERS
    each = replace(model, members=4 * MEMBERS)
    logits = jax.jit(lambda a, base, *rows: each.logits(join(base, gather(a, members)), *rows))
    close_trees(logits(*placed, *rows), logits(adapters, base, tokens, lengths))
