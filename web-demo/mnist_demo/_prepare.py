"""Bring a drawing into MNIST's form.

MNIST's digits were cropped, fitted into 20x20 with their aspect kept, antialiased, and placed in
28x28 with the centre of mass in the middle. A network trained on them expects no less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EMPTY", "prepare"]

SIZE: Final = 28
BOX: Final = 20
EMPTY: Final = 8  # ink below this everywhere is an empty canvas
_DUST: Final = 0.1  # ink below this share of the darkest does not widen the box


def prepare(canvas: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the drawing as MNIST would have it: uint8 ``[28, 28]``, ink is 255.

    Faint ink is strengthened. So are strokes so thin that resampling made them faint, which comes
    to the same as thickening them. An empty canvas gives an empty image.

    Args:
        canvas: uint8 ``[height, width]``, ink is 255.
    """
    darkest = int(canvas.max(initial=0))
    if darkest < EMPTY:
        return np.zeros((SIZE, SIZE), np.uint8)
    dust = int(darkest * _DUST)
    top, bottom = _extent(canvas.max(axis=1) > dust)
    left, right = _extent(canvas.max(axis=0) > dust)
    digit = _strengthen(_fit(canvas[top:bottom, left:right]))
    high, wide = digit.shape
    row = _place(digit.sum(axis=1), high)
    column = _place(digit.sum(axis=0), wide)
    out = np.zeros((SIZE, SIZE), np.uint8)
    out[row : row + high, column : column + wide] = np.rint(digit)
    return out


def _extent(inked: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first and one past the last True."""
    return int(inked.argmax()), len(inked) - int(inked[::-1].argmax())


def _fit(crop: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Resample so that the longer side has 20 pixels."""
    high, wide = crop.shape
    scale = BOX / max(high, wide)
    rows, columns = max(1, round(high * scale)), max(1, round(wide * scale))
    return _average(_average(crop, rows).T, columns).T


def _average(image: NDArray[Any], count: int) -> NDArray[np.float32]:
    """Average the rows into `count` equal bands, shared rows by their share: area resampling.

    The sum of a band is the difference of two running sums, read between rows at its edges.
    """
    sums = np.zeros((len(image) + 1, image.shape[1]), np.float32)
    # Sums of a column of bytes are below 2^24 up to 65 793 rows, so exact in float32.
    np.cumsum(image, axis=0, dtype=np.float32, out=sums[1:])
    edges = np.arange(count + 1) * (len(image) / count)
    below = np.minimum(edges.astype(np.intp), len(image) - 1)
    share = (edges - below).astype(np.float32)[:, None]
    at_edges = sums[below] + share * (sums[below + 1] - sums[below])
    bands: NDArray[np.float32] = np.diff(at_edges, axis=0) * np.float32(count / len(image))
    return bands


def _strengthen(digit: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale so that the middle of a stroke is full ink, as a pen on paper leaves it."""
    inked = np.sort(digit[digit > digit.max() * np.float32(0.4)])
    typical = inked[(len(inked) * 3) // 4]
    return np.clip(digit * np.float32(255 / typical), 0, 255)


def _place(profile: NDArray[np.float32], length: int) -> int:
    """Return where to put `length` pixels to have their centre of mass in pixel 14, as MNIST."""
    centre = float(profile @ np.arange(length)) / float(profile.sum())
    return min(max(round(SIZE / 2 - centre), 0), SIZE - length)
