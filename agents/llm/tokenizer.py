"""Tokenizers: what the library needs of one, and those that a folder in the layout of Hugging Face holds."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import tokenizers


class Tokenizer(Protocol):
    """Text to ids and back.

    Control tokens are those that texts of users must not produce: begin, end and header marks. Other added tokens, such
    as `<think>`, may stand in texts.
    """

    @property
    def vocab_size(self) -> int:
        """One more than the highest id; a model's vocabulary may be padded beyond it."""
        ...

    @property
    def bos_id(self) -> int | None:
        """The token that begins a sequence, for families that have one. `encode` never adds it, templates do."""
        ...

    @property
    def pad_id(self) -> int:
        """What fills rows. It may be a token that also occurs in texts: masks come from lengths, never from ids."""
        ...

    @property
    def end_of_turn_ids(self) -> tuple[int, ...]:
        """Tokens after which generation stops."""
        ...

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """Ids of all control tokens by their texts."""
        ...

    @property
    def named_tokens(self) -> Mapping[str, str]:
        """Texts of tokens by the names that templates know them by, `bos_token` and the like."""
        ...

    @property
    def chat_template(self) -> str | None:
        """A Jinja template as Hugging Face defines them; None for models that have not learned to chat."""
        ...

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Ids of a text. Control tokens written out in it are read as such only where `special` says so.

        A byte for which a vocabulary has no token is left out; SmolLM2 for one has none for some unassigned characters.

        Raises:
            ValueError: the text holds half of a surrogate pair, which has no bytes.
        """
        ...

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """Text of ids; control tokens are left out unless `special`. Bytes that are no UTF-8 become U+FFFD."""
        ...


class FastTokenizer:
    """A tokenizer of the package `tokenizers` with its control tokens and its template.

    Args:
        backend: Set up for encoding; truncation and padding get switched off.
        named_tokens: As in `Tokenizer`; `bos_token` and `pad_token` give their ids.
        end_of_turn_ids: As in `Tokenizer`.

    Raises:
        ValueError: a named token or an end of turn is not in the vocabulary.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        named_tokens: Mapping[str, str],
        end_of_turn_ids: Sequence[int],
        chat_template: str | None = None,
    ):
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._lock = threading.Lock()
        self.named_tokens = dict(named_tokens)
        self.chat_template = chat_template
        self.end_of_turn_ids = tuple(end_of_turn_ids)
        added = backend.get_added_tokens_decoder()
        self.control_tokens = {token.content: id for id, token in sorted(added.items()) if token.special}
        self.vocab_size = max(backend.get_vocab(with_added_tokens=True).values()) + 1
        for id in self.end_of_turn_ids:
            if not 0 <= id < self.vocab_size:
                raise ValueError(f"end of turn {id} is not in the vocabulary of {self.vocab_size} tokens")
        self.bos_id = self._named_id("bos_token")
        pad_id = self._named_id("pad_token")
        self.pad_id = pad_id if pad_id is not None else (*self.end_of_turn_ids, 0)[0]

    def encode(self, text: str, special: bool = False) -> list[int]:
        with self._lock:  # the switch belongs to the backend, not to the call
            self._backend.encode_special_tokens = not special
            try:
                return self._backend.encode(text, add_special_tokens=False).ids
            except TypeError as error:  # so the backend says it
                raise ValueError("the text holds half of a surrogate pair, which has no bytes") from error

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        return self._backend.decode([int(id) for id in ids], skip_special_tokens=not special)

    def _named_id(self, name: str) -> int | None:
        if name not in self.named_tokens:
            return None
        id = self._backend.token_to_id(self.named_tokens[name])
        if id is None:
            raise ValueError(f"{name} {self.named_tokens[name]!r} is not in the vocabulary")
        return id


def from_folder(path: str | Path) -> FastTokenizer:
    """The tokenizer of a folder as Hugging Face lays it out.

    Reads tokenizer.json, tokenizer_config.json, special_tokens_map.json, generation_config.json and the template, from
    chat_template.jinja, chat_template.json or tokenizer_config.json. Only the first file must exist: without it the
    package transformers, where installed, converts what there is.

    Raises:
        ValueError: a file is missing or does not fit the others.
    """
    folder = Path(path)
    config = _read(folder / "tokenizer_config.json")
    if (folder / "tokenizer.json").is_file():
        backend = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    else:
        backend = _converted(folder)
    _add_missing(backend, config.get("added_tokens_decoder", {}), folder)
    named = _named(_read(folder / "special_tokens_map.json")) | _named(config)
    ends: list[int] = []
    if "eos_token" in named:
        eos_id = backend.token_to_id(named["eos_token"])
        if eos_id is None:
            raise ValueError(f"{folder}: eos_token {named['eos_token']!r} is not in the vocabulary")
        ends.append(eos_id)
    more = _read(folder / "generation_config.json").get("eos_token_id")
    ends += [more] if isinstance(more, int) else more or []
    return FastTokenizer(
        backend,
        named_tokens=named,
        end_of_turn_ids=tuple(dict.fromkeys(ends)),
        chat_template=_template(folder, config),
    )


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _named(config: Mapping[str, Any]) -> dict[str, str]:
    """Entries `..._token`, written as texts or as descriptions of added tokens, those of `extra_special_tokens` too."""
    found = {}
    extra = config.get("extra_special_tokens")
    for name, value in {**(extra if isinstance(extra, dict) else {}), **config}.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            found[name] = text
    return found


def _add_missing(backend: tokenizers.Tokenizer, added: Mapping[str, Any], folder: Path) -> None:
    """Add the tokens that stand in tokenizer_config.json alone."""
    for id, entry in sorted(added.items(), key=lambda item: int(item[0])):
        text = entry["content"]
        if backend.token_to_id(text) is None:
            flags = {name: entry[name] for name in ("single_word", "lstrip", "rstrip", "normalized") if name in entry}
            token = tokenizers.AddedToken(text, special=entry.get("special", False), **flags)
            (backend.add_special_tokens if token.special else backend.add_tokens)([token])
        if backend.token_to_id(text) != int(id):
            found = backend.token_to_id(text)
            raise ValueError(f"{folder}: {text!r} is {id} in tokenizer_config.json but {found} in tokenizer.json")


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    if (folder / "chat_template.jinja").is_file():
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    template = _read(folder / "chat_template.json").get("chat_template", config.get("chat_template"))
    if isinstance(template, list):  # several by name, of which chats without tools use the default
        named = {entry["name"]: entry["template"] for entry in template}
        if "default" not in named:
            raise ValueError(f"{folder}: no chat template is named default; there are {', '.join(sorted(named))}")
        return named["default"]
    return template


def _converted(folder: Path) -> tokenizers.Tokenizer:
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ValueError(
            f"{folder} holds no tokenizer.json. Older layouts need the package transformers, which is not installed."
        ) from error
    try:
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer
    except (OSError, ValueError, AttributeError, ImportError) as error:
        raise ValueError(f"{folder} holds neither tokenizer.json nor files that transformers can convert") from error
