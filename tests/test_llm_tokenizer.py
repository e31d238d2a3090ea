"""Tokenizers: ids, control tokens that texts cannot make, and the files of a folder."""

import json
import subprocess
import sys

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_texts import CONTROLS, NAMED, backend, texts, tokenizer
from transformers import PreTrainedTokenizerFast

from jaxscope.agents.llm.byte_tokenizer import CONTROL_TOKENS, ByteTokenizer
from jaxscope.agents.llm.tokenizer import FastTokenizer, Tokenizer, from_folder

BOTH: list[Tokenizer] = [tokenizer(), ByteTokenizer()]
both = pytest.mark.parametrize("one", BOTH, ids=["fast", "byte"])


@both
@given(st.data())
@settings(max_examples=50, deadline=None)
def test_decoding_undoes_encoding_and_texts_never_become_control_tokens(one: Tokenizer, data: st.DataObject):
    text = data.draw(texts() | st.sampled_from(list(one.control_tokens)))
    ids = one.encode(text)
    assert one.decode(ids) == text
    assert not set(ids) & set(one.control_tokens.values())
    assert all(0 <= id < one.vocab_size for id in ids)


@both
def test_control_tokens_are_read_where_asked_for(one: Tokenizer):
    for text, id in one.control_tokens.items():
        assert one.encode(text, special=True) == [id]
        assert one.decode([id], special=True) == text
        assert one.decode([id]) == ""
    mark = next(iter(one.control_tokens))
    assert one.encode(f"a{mark}b", special=True) == [*one.encode("a"), one.control_tokens[mark], *one.encode("b")]
    assert set(one.end_of_turn_ids) <= set(one.control_tokens.values())


@both
def test_half_a_surrogate_pair_is_refused(one: Tokenizer):
    with pytest.raises(ValueError, match="surrogate"):
        one.encode("\ud83d")


def test_other_added_tokens_may_stand_in_texts():
    assert len(tokenizer().encode("<think>")) == 1
    assert "<think>" not in tokenizer().control_tokens
    assert tokenizer().decode(tokenizer().encode("<think>")) == "<think>"


def test_padding_may_be_the_end_of_turn_and_else_is_the_first_end():
    assert tokenizer().pad_id == tokenizer().end_of_turn_ids[0]
    bare = FastTokenizer(backend(), named_tokens={}, end_of_turn_ids=[7, 9])
    assert (bare.bos_id, bare.pad_id) == (None, 7)


def test_ids_outside_of_the_vocabulary_are_refused():
    size = tokenizer().vocab_size
    with pytest.raises(ValueError, match=f"{size} is not in the vocabulary of {size}"):
        FastTokenizer(backend(), named_tokens={}, end_of_turn_ids=[size])
    with pytest.raises(ValueError, match="bos_token '<nope>' is not"):
        FastTokenizer(backend(), named_tokens={"bos_token": "<nope>"}, end_of_turn_ids=[])


def test_bytes_that_are_no_text_decode_with_replacement():
    one = ByteTokenizer()
    assert one.decode([0xFF, 97]) == "\ufffda"
    assert one.decode("é".encode()[:1]) == "\ufffd"
    # A control token between the two bytes of a character leaves two halves.
    assert one.decode([0xC3, one.bos_id, 0xA9]) == "\ufffd\ufffd"
    assert one.decode([97, 287, 98]) == "ab"  # 287 is unused
    pair = tokenizer().encode("é")
    assert len(pair) == 2
    assert tokenizer().decode(pair[:1]) == "\ufffd"


def test_the_byte_vocabulary_is_a_multiple_of_32():
    one = ByteTokenizer()
    assert one.vocab_size % 32 == 0
    assert max(one.control_tokens.values()) == 255 + len(CONTROL_TOKENS) < one.vocab_size
    assert one.encode("hé") == list("hé".encode())


def save(folder, config: dict | None = None, **files: dict | str):
    """A folder with the small tokenizer; `name_ext` are further files."""
    backend().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(NAMED if config is None else config))
    for name, content in files.items():
        stem, _, ext = name.rpartition("_")
        (folder / f"{stem}.{ext}").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


@given(text=texts())
@settings(max_examples=50, deadline=None)
def test_ids_are_those_of_transformers(text):
    reference = REFERENCE
    assert tokenizer().encode(text, special=True) == reference(text, add_special_tokens=False)["input_ids"]
    assert tokenizer().encode(text) == reference(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


REFERENCE = PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer.from_str(backend().to_str()))


def test_a_folder_gives_the_tokenizer_that_was_saved(tmp_path):
    cut = tokenizers.Tokenizer.from_str(backend().to_str())
    cut.enable_truncation(2)
    cut.enable_padding(length=9)
    save(tmp_path)
    cut.save(str(tmp_path / "tokenizer.json"))
    one = from_folder(tmp_path)
    text = "the agent walks to the door"
    assert one.encode(text) == tokenizer().encode(text)  # neither cut nor padded
    assert one.control_tokens == tokenizer().control_tokens
    assert (one.vocab_size, one.bos_id, one.pad_id) == (tokenizer().vocab_size, tokenizer().bos_id, tokenizer().pad_id)
    assert one.end_of_turn_ids == tokenizer().end_of_turn_ids
    assert one.chat_template is None


def test_named_tokens_are_read_in_each_of_their_forms(tmp_path):
    config = {
        "bos_token": {"content": "<|begin|>", "lstrip": False},
        "eos_token": "<|eot|>",
        "unk_token": None,
        "add_bos_token": True,
        "extra_special_tokens": {"head_token": "<|head|>"},
    }
    one = from_folder(save(tmp_path, config, special_tokens_map_json={"pad_token": "<|im_end|>", "eos_token": "no"}))
    assert one.named_tokens == {
        "bos_token": "<|begin|>",
        "eos_token": "<|eot|>",
        "pad_token": "<|im_end|>",
        "head_token": "<|head|>",
    }


def test_ends_of_turn_are_those_of_generation_too(tmp_path):
    ids = tokenizer().control_tokens
    end, eot = ids["<|im_end|>"], ids["<|eot|>"]
    several = from_folder(save(tmp_path, generation_config_json={"eos_token_id": [eot, end]}))
    assert several.end_of_turn_ids == (end, eot)
    one = from_folder(save(tmp_path, {}, generation_config_json={"eos_token_id": eot}))
    assert one.end_of_turn_ids == (eot,)
    with pytest.raises(ValueError, match="eos_token '<nope>' is not in the vocabulary"):
        from_folder(save(tmp_path, {"eos_token": "<nope>"}))


def test_templates_come_from_the_file_of_highest_rank(tmp_path):
    config = {**NAMED, "chat_template": "config"}
    assert from_folder(save(tmp_path, config)).chat_template == "config"
    assert from_folder(save(tmp_path, config, chat_template_json={"chat_template": "json"})).chat_template == "json"
    assert from_folder(save(tmp_path, config, chat_template_jinja="jinja\n")).chat_template == "jinja\n"


def test_of_several_templates_the_default_is_taken(tmp_path):
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    assert from_folder(save(tmp_path, {"chat_template": named})).chat_template == "d"
    with pytest.raises(ValueError, match="no chat template is named default; there are tool_use"):
        from_folder(save(tmp_path, {"chat_template": named[:1]}))


def test_tokens_that_only_the_config_has_are_added(tmp_path):
    size = tokenizer().vocab_size
    entry = {"content": "<|new|>", "special": True, "normalized": False}
    one = from_folder(save(tmp_path, {"added_tokens_decoder": {str(size): entry}}))
    assert one.control_tokens["<|new|>"] == size
    assert size not in one.encode("<|new|>")
    with pytest.raises(ValueError, match=rf"'<\|new\|>' is {size + 1} in tokenizer_config.json but {size}"):
        from_folder(save(tmp_path, {"added_tokens_decoder": {str(size + 1): entry}}))


def older_layout(folder):
    """The small tokenizer as a vocabulary and a list of merges."""
    backend().model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    return folder


def test_older_layouts_are_converted_by_transformers(tmp_path):
    one = from_folder(older_layout(tmp_path))
    text = "the agent walks to the door, 12 é"
    assert one.encode(text) == tokenizer().encode(text)


def test_without_transformers_older_layouts_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match=r"holds no tokenizer.json.*transformers, which is not installed"):
        from_folder(older_layout(tmp_path))


def test_folders_without_a_tokenizer_are_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a folder"):
        from_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"neither tokenizer\.json nor"):
        from_folder(tmp_path)


def test_the_library_reads_text_without_transformers():
    names = ("tokenizer", "gguf_tokenizer", "byte_tokenizer", "conversation", "conversation_batch")
    code = f"import sys; {'; '.join(f'import jaxscope.agents.llm.{name}' for name in names)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "jaxscope.agents.llm.chat" in loaded
    assert not loaded & {"transformers", "torch"}


def test_all_control_tokens_are_known():
    assert tuple(tokenizer().control_tokens) == CONTROLS
