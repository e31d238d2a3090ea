"""The built-in model: random weights over bytes, for tests and for learning from nothing; needs no file."""

from __future__ import annotations

from jaxscope.agents.llm.byte_tokenizer import ByteTokenizer
from jaxscope.agents.llm.config import ModelConfig
from jaxscope.agents.llm.rotary import RopeConfig

_TOKENIZER = ByteTokenizer()
#: 83,200 parameters.
CONFIG = ModelConfig(
    family="llama",
    vocab_size=_TOKENIZER.vocab_size,
    hidden_size=64,
    intermediate_size=128,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    layer_types=("full_attention",) * 2,
    ropes=(("full_attention", RopeConfig()),),
    max_position_embeddings=1024,
    tie_word_embeddings=True,
    bos_token_id=_TOKENIZER.bos_id,
    eos_token_id=_TOKENIZER.end_of_turn_ids,
    pad_token_id=_TOKENIZER.pad_id,
)
