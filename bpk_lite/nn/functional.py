"""The activations as functions on arrays (R121).

They compute in the dtype of their input; integers, and BF16, are taken as float32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["erf", "gelu", "log_softmax", "relu", "softmax"]

_PIECE: Final = 1 << 16  # elements that exist as Python floats at one time


def relu(x: ArrayLike) -> NDArray[Any]:
    """Return ``max(x, 0)``; NaN stays NaN."""
    return np.maximum(x, 0)


def gelu(x: ArrayLike, *, approximate: bool = False) -> NDArray[Any]:
    """Return ``x/2 · (1 + erf(x/√2))``, or the approximation by tanh.

    The exact one is computed in binary64 and rounded once, 0.1 µs an element.
    """
    values = _floats(x)
    if approximate:
        inner = math.sqrt(2.0 / math.pi) * (values + 0.044715 * values**3)
        return 0.5 * values * (1.0 + np.tanh(inner))
    wide = values.astype(np.float64)
    out: NDArray[Any] = (0.5 * wide * (1.0 + erf(wide * math.sqrt(0.5)))).astype(values.dtype)
    return out


def softmax(x: ArrayLike, dim: int = -1) -> NDArray[Any]:
    """Return ``e^x / Σ e^x`` along `dim`, without overflow."""
    values = _floats(x)
    powers = np.exp(values - values.max(axis=dim, keepdims=True))
    out: NDArray[Any] = powers / powers.sum(axis=dim, keepdims=True)
    return out


def log_softmax(x: ArrayLike, dim: int = -1) -> NDArray[Any]:
    """Return ``log(softmax(x))`` along `dim`, without overflow or loss of small ones."""
    values = _floats(x)
    shifted = values - values.max(axis=dim, keepdims=True)
    out: NDArray[Any] = shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))
    return out


def erf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the error function, as exact as the C library's.

    numpy has none. A loop over Python floats beats the polynomials that would be needed for
    the same exactness on all but large arrays, and is shorter.
    """
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty(flat.shape, np.float64)
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        out[start : start + _PIECE] = list(map(math.erf, piece.tolist()))
    return out.reshape(x.shape)


def _floats(x: ArrayLike) -> NDArray[Any]:
    values = np.asarray(x)
    return values if np.issubdtype(values.dtype, np.floating) else values.astype(np.float32)
