"""Families of language models: one file each, named as Hugging Face's `model_type`.

A file has `parse(fields) -> ModelConfig`, `unparse(config) -> dict` and `Block(config, build, kind)`: one layer, called
as `block(x, span, memory) -> (x, memory)`.
"""
