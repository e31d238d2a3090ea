"""Families of language models: one file each, named as Hugging Face's `model_type`.

A file has `parse(fields) -> ModelConfig`, `unparse(config) -> dict` and `Block(config, build, kind)`: one layer, called
as `block(x, span, memory) -> (x, memory)`. Where they apply, it also has `NORMS_FROM_ZERO = True` (norms store their
weight less one), `empty_memory(config, rows)` (of a layer of linear attention) and `text_part(raw) -> dict` (the text's
configuration within that of a model with other parts).
"""
