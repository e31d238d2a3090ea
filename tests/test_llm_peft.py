"""Adapters in PEFT's folders: what we write PEFT loads to the same logits, and the other way round."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import peft
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from jaxscope.agents.llm import peft_folder
from jaxscope.agents.llm.config import to_hugging_face
from jaxscope.agents.llm.linear import ALL_LINEAR, LoraConfig
from jaxscope.agents.llm.lora import gather, join, split
from jaxscope.agents.llm.model import LanguageModel
from tests.tiny_models import drawn, some_tokens, tiny_config, with_random_adapters

# PEFT asks transformers by a name that the latter has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
logits_of = jax.jit(LanguageModel.logits, static_argnums=0)


def in_torch(config, params):
    """The same model in transformers, with the same weights."""
    raw = to_hugging_face(config)
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(raw.pop("model_type"), **raw), attn_implementation="eager"
    )
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        first, *rest = (key.key for key in path)
        if first == "layers":
            place, name = int(rest[0]), ".".join(rest[1:])
            found |= {f"model.layers.{place + i * config.period}.{name}": part for i, part in enumerate(leaf)}
        else:
            found["lm_head.weight" if first == "lm_head" else f"model.{first}.weight"] = leaf
    if config.tie_word_embeddings:
        found["lm_head.weight"] = params["embed_tokens"]["weight"]
    model.load_state_dict({name: torch.from_numpy(np.array(leaf)) for name, leaf in found.items()})
    return model.eval()


def torch_logits(model, tokens):
    with torch.no_grad():
        return model(torch.from_numpy(np.array(tokens)).long()).logits.numpy()


@pytest.mark.parametrize(("family", "targets"), [("qwen3", ALL_LINEAR), ("olmo3", ("q_proj", "down_proj"))])
def test_peft_loads_what_we_write(family, targets, tmp_path):
    model = LanguageModel(tiny_config(family), LoraConfig(rank=3, alpha=5.0, targets=targets))
    base, adapters = split(with_random_adapters(drawn(model)))
    peft_folder.write(tmp_path, model, adapters, base_model="tiny")
    theirs = peft.PeftModel.from_pretrained(in_torch(model.config, base), tmp_path)
    tokens, _ = some_tokens(2, 7)
    ours = logits_of(model, join(base, adapters), tokens, jnp.full(2, 7))
    np.testing.assert_allclose(torch_logits(theirs, tokens), ours, atol=2e-4, rtol=1e-4)
    assert theirs.peft_config["default"].base_model_name_or_path == "tiny"
    # And it has an effect.
    with theirs.disable_adapter():
        assert np.abs(torch_logits(theirs, tokens) - ours).max() > 0.1


@pytest.mark.parametrize("rslora", [False, True])
def test_we_load_what_peft_writes(rslora, tmp_path):
    config = tiny_config("llama")
    base = drawn(LanguageModel(config))
    settings = peft.LoraConfig(
        r=4, lora_alpha=6, target_modules="all-linear", task_type="CAUSAL_LM", lora_dropout=0.1, use_rslora=rslora
    )
    theirs = peft.get_peft_model(in_torch(config, base), settings).eval()
    torch.manual_seed(0)
    for name, parameter in theirs.named_parameters():
        if "lora_" in name:
            parameter.data.normal_(std=0.4)
    theirs.save_pretrained(tmp_path)
    lora, adapters = peft_folder.read(tmp_path, config)
    tokens, _ = some_tokens(2, 7)
    ours = logits_of(LanguageModel(config, lora), join(base, adapters), tokens, jnp.full(2, 7))
    np.testing.assert_allclose(ours, torch_logits(theirs, tokens), atol=2e-4, rtol=1e-4)


@pytest.fixture
def written(tmp_path):
    """A folder, its model and the adapter in it."""
    model = LanguageModel(tiny_config("olmo3"), LoraConfig(rank=2, alpha=5.0, targets=("v_proj", "up_proj")))
    adapters = split(with_random_adapters(model.abstract()))[1]
    return peft_folder.write(tmp_path / "adapter", model, adapters), model, adapters


def test_a_folder_gives_back_what_went_in(written):
    folder, model, adapters = written
    lora, found = peft_folder.read(folder, model.config)
    assert (lora.rank, lora.alpha, set(lora.targets)) == (2, 5.0, {"v_proj", "up_proj"})
    jax.tree.map(np.testing.assert_array_equal, found, adapters)
    raw = json.loads((folder / peft_folder.CONFIG).read_text())
    assert (raw["r"], raw["lora_alpha"], raw["target_modules"]) == (2, 5, ["up_proj", "v_proj"])
    tensors = load_file(folder / peft_folder.TENSORS)
    # olmo3 repeats its kinds of layers after four: the layers' numbers are those of the file.
    np.testing.assert_array_equal(
        tensors["base_model.model.model.layers.2.self_attn.v_proj.lora_A.weight"],
        adapters["layers"]["2"]["self_attn"]["v_proj"]["lora"]["lora_A"][0],
    )


def test_a_member_of_a_population_is_written_alone(tmp_path):
    model = LanguageModel(tiny_config("qwen3"), LoraConfig(rank=2), members=3)
    adapters = split(with_random_adapters(model.abstract()))[1]
    with pytest.raises(ValueError, match="gather one member"):
        peft_folder.write(tmp_path, model, adapters)
    peft_folder.write(tmp_path, model, gather(adapters, 2))
    jax.tree.map(np.testing.assert_array_equal, peft_folder.read(tmp_path, model.config)[1], gather(adapters, 2))
    with pytest.raises(ValueError, match="no adapters to write"):
        peft_folder.write(tmp_path, LanguageModel(model.config), {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank_pattern": {"v_proj": 4}}, "not supported: rank_pattern"),
        ({"alpha_pattern": {"v_proj": 4}}, "not supported: alpha_pattern"),
        ({"use_dora": True}, "not supported: use_dora = True"),
        ({"bias": "lora_only"}, "bias = 'lora_only' is not supported"),
        ({"modules_to_save": ["lm_head"]}, "not supported: modules_to_save"),
        ({"lora_bias": True}, "not supported: lora_bias"),
        ({"not_known_yet": 1}, "not supported: not_known_yet = 1"),
        ({"peft_type": "IA3"}, "peft_type = 'IA3': must be 'LORA'"),
        ({"lora_alpha": 0}, "lora_alpha = 0: must be a positive number"),
        ({"r": 3}, r"has shape \(2, 24\), where \(3, 24\)|has shape \(2, 16\), where \(3, 16\)"),
    ],
)
def test_what_would_be_read_wrongly_is_refused(written, change, message):
    folder, model, _ = written
    path = folder / peft_folder.CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        peft_folder.read(folder, model.config)


V = "base_model.model.model.layers.{}.self_attn.{}.{}.weight"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (V.format(1, "v_proj", "lora_A"), None, r"lacks 1 tensors, such as layers.1.self_attn.v_proj.lora.lora_A"),
        (V.format(1, "v_proj", "lora_A"), V.format(9, "v_proj", "lora_A"), "lacks 1 tensors"),
        (None, V.format(9, "v_proj", "lora_A"), "has 1 tensors that the model has not"),
        (None, "base_model.model.lm_head.lora_A.weight", "no low-rank matrix of a layer"),
        (None, V.format(1, "v_proj", "lora_magnitude_vector"), "no low-rank matrix of a layer"),
        (None, V.format(1, "w_proj", "lora_A"), "LoRA targets w_proj: the model's linear layers are"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(written, old, new, message):
    folder, model, _ = written
    tensors = load_file(folder / peft_folder.TENSORS)
    moved = tensors.pop(old) if old else np.zeros((2, 16), np.float32)
    save_file(tensors | ({new: moved} if new else {}), folder / peft_folder.TENSORS)
    with pytest.raises(ValueError, match=message):
        peft_folder.read(folder, model.config)


def test_missing_and_damaged_files_are_named(written):
    folder, model, _ = written
    (folder / peft_folder.TENSORS).write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=r"adapter_model.safetensors: cannot be read"):
        peft_folder.read(folder, model.config)
    (folder / peft_folder.CONFIG).write_text("{")
    with pytest.raises(ValueError, match=r"adapter_model.safetensors: cannot be read|is no JSON"):
        peft_folder.read(folder, model.config)
    (folder / peft_folder.TENSORS).unlink()
    with pytest.raises(ValueError, match=r"has no adapter_model.safetensors"):
        peft_folder.read(folder, model.config)


def test_adapters_in_bfloat16_are_read(written):
    import ml_dtypes

    folder, model, adapters = written
    path = folder / peft_folder.TENSORS
    save_file({name: value.astype(ml_dtypes.bfloat16) for name, value in load_file(path).items()}, path)
    _, found = peft_folder.read(folder, model.config)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-2), found, adapters)
