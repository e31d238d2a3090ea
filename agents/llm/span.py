"""Where a chunk of tokens stands: what all layers of one pass share."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxscope.agents.llm.config import ModelConfig
from jaxscope.agents.llm.rotary import Rotation, rotation

#: Position of a slot of the cache that holds no token.
HOLE = -1


class Span(NamedTuple):
    """T tokens of each of B rows, and the S slots that they may see.

    Without a cache the slots are the tokens themselves. What is a token and what is padding comes from lengths; no
    token id means padding.
    """

    valid: Bool[Array, "B T"]
    """Tokens, not padding."""
    rotations: dict[str, Rotation]
    """By kind of layer."""
    masks: dict[str, Bool[Array, "B T S"]]
    """Which slots a token sees, by kind of layer."""
    slot: Int[Array, ""] | None = None
    """Where in the cache the tokens are written: at this slot and after it, in all rows."""


def span(
    config: ModelConfig,
    positions: Int[Array, "B T"],
    valid: Bool[Array, "B T"],
    slots: Int[Array, "B S"] | None = None,
    slot: Int[Array, ""] | None = None,
) -> Span:
    """The span of tokens at `positions` of their rows.

    Args:
        slots: positions of the tokens in the cache, the new ones among them, `HOLE` where there is none.
    """
    seen = jnp.where(valid, positions, HOLE) if slots is None else slots
    causal = (seen[:, None, :] <= positions[:, :, None]) & (seen != HOLE)[:, None, :]
    rotations, masks = {}, {}
    for kind in sorted(set(config.layer_types)):
        if kind == "linear_attention":
            continue
        rotations[kind] = rotation(config.rope(kind), config.head_dim, config.max_position_embeddings, positions)
        masks[kind] = causal
        if kind == "sliding_attention":
            assert config.sliding_window
            masks[kind] = causal & (seen[:, None, :] > positions[:, :, None] - config.sliding_window)
    return Span(valid, rotations, masks, slot)
