"""Filling parameters: what is read, by which device, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxscope.agents.llm.load import fill
from jaxscope.agents.llm.names import leaves, names, nested


class Tensors:
    """A source that counts how often each element was read, and knows the largest part that was read at once."""

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values = values
        self.times = {name: np.zeros(value.shape, int) for name, value in values.items()}
        self.largest: dict[str, int] = {}

    def __str__(self):
        return "the file"

    def names(self):
        return list(self.values)

    def shape(self, name):
        return self.values[name].shape

    def dtype(self, name):
        return self.values[name].dtype

    def read(self, name, index=()):
        self.times[name][index] += 1
        part = np.array(self.values[name][index])
        self.largest[name] = max(self.largest.get(name, 0), part.size)
        return part

    def close(self):
        self.values.clear()


def abstract(layers=4, period=1, tied=False, dtype=jnp.float32) -> dict:
    """A model of two leaves a layer."""
    shapes: dict[tuple[str, ...], tuple[int, ...]] = {("embed_tokens", "weight"): (16, 8), ("norm", "weight"): (8,)}
    for kind in range(period):
        above = ("layers", str(kind))
        shapes[(*above, "mlp", "up_proj", "weight")] = (layers // period, 12, 8)
        shapes[(*above, "input_layernorm", "weight")] = (layers // period, 8)
    if not tied:
        shapes["lm_head", "weight"] = (16, 8)
    return nested({path: jax.ShapeDtypeStruct(shape, dtype) for path, shape in shapes.items()})


def drawn(layers=4, prefix="model.") -> dict[str, np.ndarray]:
    """The tensors of a file of the same model."""
    shapes = {f"{prefix}embed_tokens.weight": (16, 8), f"{prefix}norm.weight": (8,), "lm_head.weight": (16, 8)}
    for layer in range(layers):
        shapes[f"{prefix}layers.{layer}.mlp.up_proj.weight"] = (12, 8)
        shapes[f"{prefix}layers.{layer}.input_layernorm.weight"] = (8,)
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_names_of_leaves():
    path = ("layers", "1", "mlp", "up_proj", "weight")
    assert names(path, (2, 12, 8), period=3) == [
        "model.layers.1.mlp.up_proj.weight",
        "model.layers.4.mlp.up_proj.weight",
    ]
    assert names(("norm", "weight"), (8,), 3) == ["model.norm.weight"]
    assert names(("lm_head", "weight"), (8,), 3) == ["lm_head.weight"]
    tree = {"a": {"0": 1, "1": {"b": 2}}, "c": 3}
    assert nested(leaves(tree)) == tree


@pytest.mark.parametrize("prefix", ["model.", "model.language_model.", ""])
@pytest.mark.parametrize("period", [1, 2])
def test_layers_are_stacked_by_kind(period, prefix):
    values = drawn(prefix=prefix)
    params = fill(abstract(period=period), Tensors(values), period)
    assert np.array_equal(params["lm_head"]["weight"], values["lm_head.weight"])
    assert np.array_equal(params["embed_tokens"]["weight"], values[f"{prefix}embed_tokens.weight"])
    for layer in range(4):
        kept = params["layers"][str(layer % period)]["mlp"]["up_proj"]["weight"][layer // period]
        assert np.array_equal(kept, values[f"{prefix}layers.{layer}.mlp.up_proj.weight"])
    assert jax.tree.map(lambda x: (x.shape, x.dtype), params) == jax.tree.map(
        lambda x: (x.shape, x.dtype), abstract(period=period)
    )


def test_types_are_those_of_the_parameters_or_the_one_asked_for():
    values = {name: value.astype(jnp.bfloat16) for name, value in drawn().items()}
    for given, asked, kept in ((jnp.float32, None, "float32"), (jnp.float32, jnp.bfloat16, "bfloat16")):
        params = fill(abstract(dtype=given), Tensors(values), 1, asked)
        assert {leaf.dtype.name for leaf in jax.tree.leaves(params)} == {kept}
        assert np.array_equal(
            np.asarray(params["norm"]["weight"], np.float32), values["model.norm.weight"].astype("f4")
        )


MESH = jax.make_mesh((2, 4), ("data", "tensor"), axis_types=(AxisType.Auto, AxisType.Auto))


@pytest.mark.parametrize(
    ("up", "embed", "largest_up", "largest_embed"),
    [
        (PartitionSpec(None, "tensor", None), PartitionSpec("data", None), 12 * 8 // 4, 16 * 8 // 2),
        (PartitionSpec(None, "data", "tensor"), PartitionSpec(("data", "tensor")), 12 * 8 // 8, 16 * 8 // 8),
        (PartitionSpec("data", None, "tensor"), PartitionSpec(), 12 * 8 // 4, 16 * 8),
        (PartitionSpec("tensor"), PartitionSpec(None, "tensor"), 12 * 8, 16 * 8 // 4),
    ],
)
def test_every_element_is_read_once_and_no_more_than_a_device_holds_at_a_time(up, embed, largest_up, largest_embed):
    specs = jax.tree.map(lambda _: PartitionSpec(), abstract())
    specs["layers"]["0"]["mlp"]["up_proj"]["weight"], specs["embed_tokens"]["weight"] = up, embed
    shardings = jax.tree.map(lambda spec: NamedSharding(MESH, spec), specs)
    source = Tensors(drawn())
    params = fill(abstract(), source, 1, shardings=shardings)
    for name, times in source.times.items():
        assert (times == 1).all(), name
    assert source.largest["model.layers.2.mlp.up_proj.weight"] == largest_up
    assert source.largest["model.embed_tokens.weight"] == largest_embed
    assert jax.tree.map(lambda leaf: leaf.sharding, params) == shardings
    alone = fill(abstract(), Tensors(drawn()), 1)
    assert jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b), params, alone))
    for leaf in jax.tree.leaves(params):
        for shard in leaf.addressable_shards:
            assert np.array_equal(shard.data, np.asarray(leaf)[shard.index])


def test_one_sharding_serves_all():
    whole = NamedSharding(MESH, PartitionSpec())
    source = Tensors(drawn())
    params = fill(abstract(), source, 1, shardings=whole)
    assert all(leaf.sharding == whole for leaf in jax.tree.leaves(params))
    assert all((times == 1).all() for times in source.times.values())


def refused(params: dict, values: dict[str, np.ndarray], period=1) -> str:
    source = Tensors(values)
    with pytest.raises(ValueError, match="the file: its tensors do not fit") as error:
        fill(params, source, period)
    assert not source.largest  # nothing was read
    assert "\n" not in str(error.value)
    return str(error.value).partition("configuration: ")[2]


def test_missing_and_strange_tensors_and_other_shapes_are_told_at_once():
    values = drawn()
    for layer in range(4):
        del values[f"model.layers.{layer}.input_layernorm.weight"]
    values["model.layers.0.mlp.up_proj.weight"] = np.zeros((8, 12))
    values["model.layers.0.mlp.up_proj.bias"] = np.zeros(12)
    names = ", ".join(f"model.layers.{layer}.input_layernorm.weight" for layer in range(3))
    assert refused(abstract(), values) == (
        f"4 missing ({names}, ...); 1 not of this model (model.layers.0.mlp.up_proj.bias); "
        "1 of another shape (model.layers.0.mlp.up_proj.weight [8, 12] for [12, 8])"
    )


def test_layers_too_many_or_too_few():
    assert refused(abstract(layers=2), drawn()).startswith("4 not of this model (model.layers.2.")
    assert refused(abstract(layers=6, period=2), drawn(), 2).startswith("4 missing (model.layers.4.")
    assert refused(abstract(), {}).startswith("11 missing (model.embed_tokens.weight")


def test_tensors_that_a_text_model_can_do_without():
    values = drawn()
    for name in ("model.rotary_emb.inv_freq", "model.layers.1.self_attn.rotary_emb.inv_freq", "mtp.fc.weight"):
        values[name] = np.zeros(3, np.float32)
    values["model.visual.blocks.0.attn.qkv.weight"] = values["visual.patch_embed.proj.weight"] = np.zeros(3)
    source = Tensors(values)
    fill(abstract(), source, 1)
    assert not any(source.times["mtp.fc.weight"])
    assert "visually" in refused(abstract(), values | {"visually.weight": np.zeros(3)})


def test_a_head_beside_tied_embeddings_is_ignored_where_it_has_their_shape():
    source = Tensors(drawn())
    params = fill(abstract(tied=True), source, 1)
    assert "lm_head" not in params
    assert not source.times["lm_head.weight"].any()
    assert "lm_head.weight" in refused(abstract(tied=True), drawn() | {"lm_head.weight": np.zeros((17, 8))})
    without = drawn()
    del without["lm_head.weight"]
    assert refused(abstract(), without) == "1 missing (lm_head.weight)"
