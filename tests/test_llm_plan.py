"""Memory plans: counts that are known, and bytes that arrays really take on a mesh."""

import json

import jax
import pytest

from benchmarks import llm_plan
from jaxscope.agents.llm import cache, known, sharding
from jaxscope.agents.llm.linear import ALL_LINEAR, LoraConfig
from jaxscope.agents.llm.lora import split
from jaxscope.agents.llm.model import LanguageModel
from jaxscope.agents.llm.plan import Layout, layouts, parameters, plan
from tests.tiny_models import tiny_config

#: From the models' cards and files.
COUNTS = {
    "SmolLM2-135M": 134_515_008,
    "Llama-3.2-1B": 1_235_814_400,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen3-4B-Instruct-2507": 4_022_468_096,
    "Qwen3-8B": 8_190_735_360,
    "OLMo-3-7B": 7_298_011_136,
}


@pytest.mark.parametrize("name", known.names())
def test_known_models_have_their_size(name):
    count = parameters(LanguageModel(known.config(name)))
    if name in COUNTS:
        assert count == COUNTS[name]
    else:  # the name says it, the text part of models that also see is a bit less
        assert 0.95 < count / (float(name.split("-")[-1].removesuffix("B")) * 1e9) < 1.02
    adapted = LanguageModel(known.config(name), LoraConfig(targets=ALL_LINEAR))
    assert parameters(adapted) == count


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'Qwen3-8B'"):
        known.config("Qwen3-8")


def test_layouts_are_all_that_there_are():
    assert set(layouts(4)) == {(1, 1, 4), (1, 4, 1), (4, 1, 1), (2, 2, 1), (2, 1, 2), (1, 2, 2)}
    assert len(layouts(8)) == len(set(layouts(8))) == 10
    with pytest.raises(ValueError, match="devices = 0"):
        layouts(0)


def bytes_on_first_device(tree):
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("lora", [None, LoraConfig(rank=2, targets=("k_proj", "down_proj"))])
def test_planned_bytes_are_those_of_arrays(lora):
    model = LanguageModel(tiny_config("olmo3"), lora)
    mesh = sharding.mesh(data=2, fsdp=2, tensor=2)
    row = next(row for row in plan(model, 8, 4, 16, "float32") if row.layout == (2, 2, 2))
    params = jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape, leaf.dtype), model.abstract())
    trained = params if lora is None else split(params)[1]
    moments = (jax.tree.map(jax.numpy.zeros_like, trained),) * 2
    remembered = cache.empty(model, 4, 16)
    for planned, tree, placement in (
        (row.memory.parameters, params, sharding.place(model, params, mesh.shape)),
        (row.memory.gradients, trained, sharding.place(model, trained, mesh.shape)),
        (row.memory.optimiser, moments, sharding.place(model, moments, mesh.shape)),
        (row.memory.cache, remembered, sharding.place_cache(model, 4, 16, mesh.shape)),
    ):
        assert bytes_on_first_device(placement.put(tree, mesh)) == planned
    assert row.undivided == ()


def test_sums_of_a_plan():
    model = LanguageModel(known.config("Qwen3-4B-Instruct-2507"))
    (one,) = plan(model, 1, 1, 32768)
    count = COUNTS["Qwen3-4B-Instruct-2507"]
    assert one.layout == Layout(1, 1, 1)
    # bfloat16 weights and gradients, three float32 numbers for each.
    assert one.memory[:3] == (2 * count, 2 * count, 12 * count)
    assert one.memory.total == sum(one.memory)
    # 36 layers, keys and values, 8 heads of 128 numbers of 2 bytes; then positions and three numbers of a row.
    assert one.memory.cache == 32768 * (36 * 2 * 8 * 128 * 2 + 4) + 4 + 4 + 1
    eight = plan(model, 8, 8, 32768)
    assert [row.memory.total for row in eight] == sorted(row.memory.total for row in eight)
    assert {row.layout for row in eight} == set(layouts(8))
    by_layout = {row.layout: row.memory for row in eight}
    assert by_layout[Layout(8, 1, 1)].parameters == 2 * count
    # All but the norms is divided.
    assert 2 * count / 8 < by_layout[Layout(1, 8, 1)].parameters < 2 * count / 8 * 1.001
    (adapted,) = plan(LanguageModel(model.config, LoraConfig(rank=16, targets=ALL_LINEAR)), 1, 1, 1024)
    assert adapted.memory.gradients == adapted.memory.parameters - 2 * count
    assert adapted.memory.optimiser == 2 * adapted.memory.gradients < one.memory.optimiser / 20


def test_what_does_not_divide_is_told():
    rows = plan(LanguageModel(known.config("SmolLM2-135M")), 2, 2, 128)
    told = {row.layout: " ".join(map(str, row.undivided)) for row in rows}
    assert "q_proj.weight: dimension 1 (9 heads) is not divided by tensor = 2" in told[Layout(1, 1, 2)]
    assert not told[Layout(1, 2, 1)]


def test_impossible_plans_are_refused():
    model = LanguageModel(known.config("SmolLM2-135M"))
    with pytest.raises(ValueError, match="rows = 0"):
        plan(model, 1, 0, 128)
    with pytest.raises(ValueError, match="a context of 9000 tokens does not fit: the model has 8192"):
        plan(model, 1, 1, 9000)


def test_the_benchmark_prints_and_returns_the_plan(capsys):
    records = llm_plan.run("SmolLM2-135M", devices=2, rows=2, context=64, rank=8)
    printed = capsys.readouterr().out
    assert "0.13e9 parameters" in printed
    assert "adapters of rank 8" in printed
    assert "1 x 2 x 1" in printed
    assert "(9 heads) is not divided by tensor = 2" in printed
    assert len(json.loads(json.dumps(records))) == 3
    first = records[0]
    parts = ("parameters_bytes", "gradients_bytes", "optimiser_bytes", "cache_bytes")
    assert first["total_bytes"] == sum(first[part] for part in parts)
    assert first["parameters"] == COUNTS["SmolLM2-135M"]
