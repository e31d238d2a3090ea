"""Tokenizers from the metadata of GGUF files: splits, merges, kinds of tokens, and what is refused."""

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_texts import CONTROLS, CORPUS, PLAIN_ADDED, texts
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from jaxscope.agents.llm.gguf_tokenizer import SPLITS, from_metadata
from jaxscope.agents.llm.tokenizer import FastTokenizer


def trained(pre: str) -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = SPLITS[pre]()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    return made


def metadata(pre: str, made: Tokenizer, **more) -> dict:
    """What a GGUF file would say of a tokenizer; its control tokens come first, as in SmolLM2."""
    model = json.loads(made.to_str())["model"]
    plain = sorted(model["vocab"], key=model["vocab"].__getitem__)
    tokens = [*CONTROLS, *PLAIN_ADDED, *plain]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(CONTROLS) + [4] * len(PLAIN_ADDED) + [1] * len(plain),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        **{f"tokenizer.{key}": value for key, value in more.items()},
    }


TRAINED = {pre: trained(pre) for pre in SPLITS}
READ = {pre: from_metadata(metadata(pre, made)) for pre, made in TRAINED.items()}
BEFORE = len(CONTROLS) + len(PLAIN_ADDED)


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "qwen2", "qwen35", "dbrx"])
@given(text=st.text(st.characters(codec="utf-8")) | st.sampled_from(CORPUS))
@settings(max_examples=30, deadline=None)
def test_ids_are_those_of_the_tokenizer_described(pre, text):
    text = unicodedata.normalize("NFC", text)
    assert READ[pre].encode(text) == [id + BEFORE for id in TRAINED[pre].encode(text).ids]


@pytest.mark.parametrize("pre", sorted(SPLITS))
@given(text=texts())
@settings(max_examples=30, deadline=None)
def test_decoding_undoes_encoding(pre, text):
    expected = unicodedata.normalize("NFC", text) if pre in ("qwen2", "qwen35") else text
    ids = READ[pre].encode(text)
    assert READ[pre].decode(ids) == expected
    assert not set(ids) & set(range(len(CONTROLS)))


def test_accents_are_composed_where_models_learned_them_so():
    apart, composed = "e\u0301", "\u00e9"
    for pre, one in READ.items():
        assert (one.encode(apart) == one.encode(composed)) == pre.startswith("qwen")


def split(pre: str, text: str) -> list[str]:
    return [piece.replace("Ġ", " ").replace("Ċ", "\n") for piece, _ in SPLITS[pre]().pre_tokenize_str(text)]


TEXT = "I'LL pay  1234 to_you!\n\n ok"


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("gpt-2", ["I", "'", "LL", " pay", " ", " 1234", " to", "_", "you", "!", "\n\n", " ok"]),
        ("smollm", ["I", "'", "LL", " pay", "  ", "1", "2", "3", "4", " to", "_", "you", "!", "\n\n", " ok"]),
        ("qwen2", ["I", "'LL", " pay", " ", " ", "1", "2", "3", "4", " to", "_you", "!\n\n", " ok"]),
        ("llama-bpe", ["I", "'LL", " pay", " ", " ", "123", "4", " to", "_you", "!\n\n", " ok"]),
    ],
)
def test_texts_are_split_by_the_rule_of_each_family(pre, pieces):
    assert split(pre, TEXT) == pieces


def test_marks_that_combine_belong_to_words_in_qwen35_only():
    word = "ก็ดี"  # two of its letters carry marks
    assert len(split("qwen35", word)) == 1
    assert len(split("qwen2", word)) > 1


def tiny(pre: str, tokens: list[str], merges: list[str]) -> FastTokenizer:
    named = {"tokens": tokens, "token_type": [1] * len(tokens), "merges": merges, "model": "gpt2", "pre": pre}
    return from_metadata({f"tokenizer.ggml.{key}": value for key, value in named.items()})


def test_two_spaces_before_a_digit_are_one_token_in_smollm():
    tokens, merges = ["Ġ", "0", "ĠĠ", "Ġ0"], ["Ġ Ġ", "Ġ 0"]
    assert tiny("smollm", tokens, merges).encode("  0") == [2, 1]
    assert tiny("gpt-2", tokens, merges).encode("  0") == [0, 3]


def test_whole_words_come_before_merges_in_llama_only():
    tokens, merges = ["a", "b", "c", "ab", "abc"], ["a b"]  # no merge makes the last
    assert tiny("llama-bpe", tokens, merges).encode("abc") == [4]
    assert tiny("gpt-2", tokens, merges).encode("abc") == [3, 2]


def test_kinds_of_tokens_and_named_ids_are_read():
    one = from_metadata(metadata("smollm", TRAINED["smollm"], **{"chat_template": "T", "ggml.eot_token_id": 5}))
    assert one.control_tokens == {text: id for id, text in enumerate(CONTROLS)}
    assert one.encode("<think>") == [len(CONTROLS)]
    assert (one.bos_id, one.pad_id, one.end_of_turn_ids) == (0, 2, (2, 5))
    assert one.named_tokens == {"bos_token": "<|begin|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}
    assert one.chat_template == "T"
    assert one.vocab_size == BEFORE + TRAINED["smollm"].get_vocab_size()
    assert READ["smollm"].chat_template is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ggml.model": "llama"}, "tokenizer.ggml.model is 'llama'; only 'gpt2'"),
        ({"ggml.pre": "brand-new"}, "tokenizer.ggml.pre is 'brand-new'; known are dbrx, gpt-2, llama-bpe"),
        ({"ggml.token_type": [1]}, r"\d+ tokens but 1 entries"),
        ({"ggml.merges": ["ab"]}, "holds 'ab', which is not two tokens"),
        ({"ggml.eos_token_id": 10**6}, r"eos_token_id is 1000000, but there are \d+ tokens"),
    ],
)
def test_other_kinds_of_tokenizers_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_metadata(metadata("smollm", TRAINED["smollm"], **change))


def test_missing_keys_are_named():
    with pytest.raises(ValueError, match=r"lacks tokenizer\.ggml\.merges"):
        from_metadata({k: v for k, v in metadata("smollm", TRAINED["smollm"]).items() if not k.endswith("merges")})
