"""The tokenizer that the metadata of a GGUF file describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from jaxscope.agents.llm.tokenizer import FastTokenizer

# Kinds of tokens, as `tokenizer.ggml.token_type` counts them.
_CONTROL, _USER_DEFINED = 3, 4


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _single_digits() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


def _words(letters: str, digits: str) -> pre_tokenizers.PreTokenizer:
    """Contractions in any case, words with at most one mark before them, digits, other marks, line ends, spaces."""
    other = rf"[^\s{letters}\p{{N}}]"
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
        rf"|[^\r\n\p{{L}}\p{{N}}]?[{letters}]+|{digits}| ?{other}+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _qwen2() -> pre_tokenizers.PreTokenizer:
    return _words(r"\p{L}", r"\p{N}")


def _qwen35() -> pre_tokenizers.PreTokenizer:
    return _words(r"\p{L}\p{M}", r"\p{N}")


def _llama3() -> pre_tokenizers.PreTokenizer:
    return _words(r"\p{L}", r"\p{N}{1,3}")


#: How text is split before merges, by `tokenizer.ggml.pre`.
SPLITS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": _gpt2,
    "olmo": _gpt2,
    "smollm": _single_digits,
    "qwen2": _qwen2,
    "qwen35": _qwen35,
    "llama-bpe": _llama3,
    "dbrx": _llama3,
}
# The models behind these were trained on texts in normal form C.
_COMPOSED = ("qwen2", "qwen35")
# Here a word that is a token as a whole is that token, whether or not merges lead to it.
_WHOLE_WORDS = ("llama-bpe",)


def from_metadata(metadata: Mapping[str, Any]) -> FastTokenizer:
    """The tokenizer of a GGUF file from its metadata, key by key as in the file.

    Raises:
        ValueError: a needed key is missing, or the tokenizer is of a kind unknown here.
    """
    model, pre = _needed(metadata, "model"), _needed(metadata, "pre")
    if model != "gpt2":
        raise ValueError(f"tokenizer.ggml.model is {model!r}; only 'gpt2', merges of byte pairs, can be read")
    if pre not in SPLITS:
        raise ValueError(f"tokenizer.ggml.pre is {pre!r}; known are {', '.join(sorted(SPLITS))}")
    tokens, kinds = _needed(metadata, "tokens"), _needed(metadata, "token_type")
    if len(tokens) != len(kinds):
        raise ValueError(f"{len(tokens)} tokens but {len(kinds)} entries of tokenizer.ggml.token_type")
    vocab = {text: id for id, text in enumerate(tokens)}
    merges = [_pair(line) for line in _needed(metadata, "merges")]
    backend = Tokenizer(models.BPE(vocab, merges, ignore_merges=pre in _WHOLE_WORDS))
    if pre in _COMPOSED:
        backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = SPLITS[pre]()
    backend.decoder = decoders.ByteLevel()
    for id, kind in enumerate(kinds):
        if kind in (_CONTROL, _USER_DEFINED):
            token = AddedToken(tokens[id], normalized=False, special=kind == _CONTROL)
            (backend.add_special_tokens if token.special else backend.add_tokens)([token])
    ids = {name: metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos", "unknown", "padding")}
    names = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
    ends = (ids["eos"], metadata.get("tokenizer.ggml.eot_token_id"))
    for name, id in {**ids, "eot": ends[1]}.items():
        if id is not None and not 0 <= id < len(tokens):
            raise ValueError(f"tokenizer.ggml.{name}_token_id is {id}, but there are {len(tokens)} tokens")
    return FastTokenizer(
        backend,
        named_tokens={names[name]: tokens[id] for name, id in ids.items() if id is not None},
        end_of_turn_ids=tuple(dict.fromkeys(int(id) for id in ends if id is not None)),
        chat_template=metadata.get("tokenizer.chat_template"),
    )


def _needed(metadata: Mapping[str, Any], key: str) -> Any:
    if f"tokenizer.ggml.{key}" not in metadata:
        raise ValueError(f"the metadata lacks tokenizer.ggml.{key}")
    return metadata[f"tokenizer.ggml.{key}"]


def _pair(line: str) -> tuple[str, str]:
    left, space, right = line.partition(" ")
    if not (left and space and right):
        raise ValueError(f"tokenizer.ggml.merges holds {line!r}, which is not two tokens with a space between")
    return left, right
