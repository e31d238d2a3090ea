"""Pictures as they were, to compare with."""

from pathlib import Path

import numpy as np
from PIL import Image

PICTURES = Path(__file__).parent / "pictures"
#: Mean difference of a channel, of 255: fonts and smoothing differ a little between releases of the drawing library.
TOLERANCE = 2.0


def difference(a, b) -> float:
    return float(np.abs(a.astype(float) - b.astype(float)).mean())


def stored(name: str) -> np.ndarray:
    return np.asarray(Image.open(PICTURES / name).convert("RGB"))


def assert_looks_as_it_did(picture, name: str) -> None:
    assert picture.dtype == np.uint8
    assert picture.shape == stored(name).shape
    assert difference(picture, stored(name)) < TOLERANCE
