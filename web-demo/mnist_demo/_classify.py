"""From ink to probabilities."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite import nn
from mnist_demo._net import Net
from mnist_demo._prepare import prepare

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Result", "classify", "model"]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What the network says about a drawing.

    Attributes:
        probabilities: float32 ``[10]``; all 0 for an empty canvas.
        preview: uint8 ``[28, 28]``, what the network saw.
        digit: the most probable digit; -1 for an empty canvas.
        empty: whether there was no ink.
        milliseconds: what preparing and classifying took.
    """

    probabilities: NDArray[np.float32]
    preview: NDArray[np.uint8]
    digit: int
    empty: bool
    milliseconds: float


@functools.cache
def model() -> Net:
    """Return the network with the weights of this package, the same at each call."""
    return nn.static_model(Net, "mnist_demo", "model.bpk")


def classify(canvas: Any, width: int, height: int) -> Result:
    """Classify the drawing on a canvas.

    Args:
        canvas: any buffer of ``width * height`` bytes, row by row, ink is 255; not copied.
        width: pixels in a row.
        height: rows.

    Raises:
        ValueError: If the buffer has another length.
    """
    started = time.perf_counter()
    ink = np.frombuffer(canvas, np.uint8)
    if ink.size != width * height:
        raise ValueError(
            f"a canvas of {width}x{height} has {width * height} bytes, the buffer has {ink.size}"
        )
    preview = prepare(ink.reshape(height, width))
    empty = not preview.any()
    logits = model()(preview[None])[0]
    probabilities = np.zeros(10, np.float32) if empty else nn.softmax(logits)
    digit = -1 if empty else int(probabilities.argmax())
    elapsed = (time.perf_counter() - started) * 1000
    return Result(probabilities, preview, digit, empty, elapsed)
