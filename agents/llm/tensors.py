"""What the weights of a model are read from: named tensors, of which any part can be had."""

from __future__ import annotations

from typing import Protocol

import numpy as np

#: One slice of step 1 for each leading axis; axes that are left out are taken whole.
Index = tuple[slice, ...]


class TensorSource(Protocol):
    """Named tensors on disk. Shapes and types are known from the start; values are read only on demand.

    `str(source)` says where they are, for messages.
    """

    def names(self) -> list[str]:
        """The names of all tensors, those of Hugging Face: `model.layers.0.self_attn.q_proj.weight`."""
        ...

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        ...

    def dtype(self, name: str) -> np.dtype:
        """The type that `read` gives; of a quantised tensor, that of its dequantised values."""
        ...

    def read(self, name: str, index: Index = ()) -> np.ndarray:
        """A part of a tensor, as an array that shares no memory with the file. No other part is read."""
        ...

    def close(self) -> None:
        """Let go of the files. Nothing can be read afterwards."""
        ...
