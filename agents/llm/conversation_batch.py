"""Conversations side by side, padded to one length."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from jaxscope.agents.llm.conversation import Conversation


class ConversationBatch(NamedTuple):
    """Rows of ids with padding on the right. Which tokens exist is known by `length` alone, never by their ids.

    Attributes:
        ids: Tokens, then padding.
        length: Number of tokens in each row.
        loss_mask: Tokens to train on.
        log_probs: At sampling; 0 where nothing was sampled.
        weights_version: Of the weights that sampled; -1 where nothing was, or it was not recorded.
    """

    ids: Int[np.ndarray, "B L"]
    length: Int[np.ndarray, " B"]
    loss_mask: Bool[np.ndarray, "B L"]
    log_probs: Float[np.ndarray, "B L"]
    weights_version: Int[np.ndarray, "B L"]

    @property
    def attention_mask(self) -> Bool[np.ndarray, "B L"]:
        """Which places hold tokens."""
        return np.arange(self.ids.shape[1])[None, :] < self.length[:, None]


def batch(
    conversations: Sequence[Conversation], speakers: Collection[str] = ("assistant",), width: int | None = None
) -> ConversationBatch:
    """The conversations as rows.

    Args:
        speakers: Whose generated turns are trained on.
        width: Length of rows; that of the longest conversation if None.

    Raises:
        ValueError: there is no conversation, one is longer than `width`, or one lacks log-probabilities.
    """
    longest = max((len(conversation) for conversation in conversations), default=0)
    width = longest if width is None else width
    if not conversations or longest > width:
        raise ValueError(f"width = {width} must hold at least one conversation, the longest of {longest} tokens")

    def rows(name: str, fill: int | float) -> np.ndarray:
        values = [
            conversation.mask(speakers) if name == "mask" else getattr(conversation, name)
            for conversation in conversations
        ]
        return np.stack([np.pad(value, (0, width - len(value)), constant_values=fill) for value in values])

    return ConversationBatch(
        ids=rows("ids", conversations[0].tokenizer.pad_id),
        length=np.array([len(conversation) for conversation in conversations], np.int32),
        loss_mask=rows("mask", False),
        log_probs=rows("log_probs", 0),
        weights_version=rows("weights_versions", -1),
    )
