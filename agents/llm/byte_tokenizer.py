"""A tokenizer that needs no file: a token a byte, and a handful of control tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

BYTES = 256
#: Control tokens in the order of their ids, from 256 on.
CONTROL_TOKENS = ("<|begin|>", "<|end|>", "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")

CHAT_TEMPLATE = """\
{{- bos_token }}
{%- if tools %}
    {{- '<|system|>' }}
    {%- for tool in tools %}
        {{- tool | tojson + '\n' }}
    {%- endfor %}
    {{- eos_token + '\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role not in ('system', 'user', 'assistant', 'tool') %}
        {{- raise_exception('the role is ' + message.role + ', not system, user, assistant or tool') }}
    {%- endif %}
    {{- '<|' + message.role + '|>' + message.content + eos_token + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
{%- endif %}
"""


class ByteTokenizer:
    """Ids 0 .. 255 are the bytes of UTF-8, the control tokens follow, the rest up to 288 is unused.

    A vocabulary of a multiple of 32 suits the widths of vector units.
    """

    vocab_size = 288
    chat_template = CHAT_TEMPLATE

    def __init__(self) -> None:
        self.control_tokens = {text: BYTES + index for index, text in enumerate(CONTROL_TOKENS)}
        self.named_tokens = {"bos_token": "<|begin|>", "eos_token": "<|end|>", "pad_token": "<|pad|>"}
        self.bos_id = self.control_tokens["<|begin|>"]
        self.pad_id = self.control_tokens["<|pad|>"]
        self.end_of_turn_ids = (self.control_tokens["<|end|>"],)

    def encode(self, text: str, special: bool = False) -> list[int]:
        if not special:
            return list(text.encode())
        ids = []
        for piece in re.split("(" + "|".join(map(re.escape, CONTROL_TOKENS)) + ")", text):
            ids += [self.control_tokens[piece]] if piece in self.control_tokens else piece.encode()
        return ids

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        parts = [b""]
        for id in map(int, ids):
            if id < BYTES:
                parts[-1] += bytes([id])
            elif special and id < BYTES + len(CONTROL_TOKENS):
                parts[-1] += CONTROL_TOKENS[id - BYTES].encode()
            else:
                parts.append(b"")  # bytes on the two sides of a control token do not make up one character
        return "".join(part.decode(errors="replace") for part in parts)
