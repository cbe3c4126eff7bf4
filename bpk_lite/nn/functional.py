"""The activations as functions on arrays (R121).

They compute in the dtype of their input; integers, and BF16, are taken as float32. NaN stays NaN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bpk_lite.nn._arrays import as_floats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "celu",
    "elu",
    "erf",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "prelu",
    "quiet_softmax",
    "relu",
    "relu6",
    "selu",
    "shrink",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "tanh",
    "tanhshrink",
    "thresholded_relu",
]

_PIECE: Final = 1 << 16  # elements that exist as Python floats at one time
_SELU_SCALE: Final = 1.0507009873554805
_SELU_ALPHA: Final = 1.6732632423543772


def relu(x: ArrayLike) -> NDArray[Any]:
    """Return ``max(x, 0)``; NaN stays NaN."""
    out: NDArray[Any] = np.maximum(as_floats(x), 0)
    return out


def relu6(x: ArrayLike) -> NDArray[Any]:
    """Return `x` limited to 0 … 6."""
    result: NDArray[Any] = np.clip(as_floats(x), 0, 6)
    return result


def leaky_relu(x: ArrayLike, negative_slope: float = 0.01) -> NDArray[Any]:
    """Return `x`, times `negative_slope` below 0."""
    values = as_floats(x)
    return np.where(values < 0, values * _like(negative_slope, values), values)


def prelu(x: ArrayLike, alpha: ArrayLike) -> NDArray[Any]:
    """Return `x`, times `alpha` below 0: one slope for all, or one for each channel (dimension 1).

    Raises:
        ValueError: If there are several slopes and dimension 1 has another size.
    """
    values, slope = as_floats(x), as_floats(alpha).reshape(-1)
    if slope.size != 1:
        if values.ndim < 2 or values.shape[1] != slope.size:
            raise ValueError(f"{slope.size} slopes do not fit an input of {list(values.shape)}")
        slope = slope.reshape(-1, *(1,) * (values.ndim - 2))
    return np.where(values < 0, values * slope, values)


def thresholded_relu(x: ArrayLike, alpha: float = 1.0) -> NDArray[Any]:
    """Return `x` where it is above `alpha`, 0 elsewhere."""
    values = as_floats(x)
    return np.where(values <= alpha, _like(0, values), values)


def elu(x: ArrayLike, alpha: float = 1.0) -> NDArray[Any]:
    """Return `x`, and ``alpha · (e^x - 1)`` below 0."""
    values = as_floats(x)
    below = np.expm1(np.minimum(values, 0)) * _like(alpha, values)
    return np.where(values < 0, below, values)


def celu(x: ArrayLike, alpha: float = 1.0) -> NDArray[Any]:
    """Return `x`, and ``alpha · (e^(x/alpha) - 1)`` below 0."""
    values = as_floats(x)
    slope = _like(alpha, values)
    return np.where(values < 0, np.expm1(np.minimum(values, 0) / slope) * slope, values)


def selu(x: ArrayLike) -> NDArray[Any]:
    """Return the self-normalizing `elu`."""
    values = elu(x, _SELU_ALPHA)
    result: NDArray[Any] = values * _like(_SELU_SCALE, values)
    return result


def gelu(x: ArrayLike, *, approximate: bool = False) -> NDArray[Any]:
    """Return ``x/2 · (1 + erf(x/√2))``, or the approximation by tanh.

    The exact one is computed in binary64 and rounded once, 0.1 µs an element.
    """
    values = as_floats(x)
    if approximate:
        inner = math.sqrt(2.0 / math.pi) * (values + 0.044715 * values**3)
        return 0.5 * values * (1.0 + np.tanh(inner))
    wide = values.astype(np.float64)
    out: NDArray[Any] = (0.5 * wide * (1.0 + erf(wide * math.sqrt(0.5)))).astype(values.dtype)
    return out


def sigmoid(x: ArrayLike) -> NDArray[Any]:
    """Return ``1 / (1 + e^-x)``, without overflow."""
    values = as_floats(x)
    powers = np.exp(-np.abs(values))
    result: NDArray[Any] = np.where(values < 0, powers, _like(1, values)) / (1 + powers)
    return result


def log_sigmoid(x: ArrayLike) -> NDArray[Any]:
    """Return ``log(sigmoid(x))``, without overflow or loss of small ones."""
    values = as_floats(x)
    out: NDArray[Any] = np.minimum(values, 0) - np.log1p(np.exp(-np.abs(values)))
    return out


def hard_sigmoid(x: ArrayLike, alpha: float = 0.2, beta: float = 0.5) -> NDArray[Any]:
    """Return ``alpha · x + beta`` limited to 0 … 1."""
    values = as_floats(x)
    result: NDArray[Any] = np.clip(values * _like(alpha, values) + _like(beta, values), 0, 1)
    return result


def silu(x: ArrayLike) -> NDArray[Any]:
    """Return ``x · sigmoid(x)``."""
    values = as_floats(x)
    result: NDArray[Any] = values * sigmoid(values)
    return result


def hard_swish(x: ArrayLike) -> NDArray[Any]:
    """Return ``x · clamp(x/6 + 1/2, 0, 1)``."""
    values = as_floats(x)
    result: NDArray[Any] = values * np.clip(values / 6 + _like(0.5, values), 0, 1)
    return result


def softplus(x: ArrayLike, beta: float = 1.0) -> NDArray[Any]:
    """Return ``log(1 + e^(beta·x)) / beta``, without overflow."""
    values = as_floats(x)
    steep = values * _like(beta, values)
    out: NDArray[Any] = np.maximum(steep, 0) + np.log1p(np.exp(-np.abs(steep)))
    result: NDArray[Any] = out / _like(beta, values)
    return result


def mish(x: ArrayLike) -> NDArray[Any]:
    """Return ``x · tanh(softplus(x))``."""
    values = as_floats(x)
    result: NDArray[Any] = values * np.tanh(softplus(values))
    return result


def softsign(x: ArrayLike) -> NDArray[Any]:
    """Return ``x / (1 + |x|)``."""
    values = as_floats(x)
    result: NDArray[Any] = values / (1 + np.abs(values))
    return result


def tanh(x: ArrayLike) -> NDArray[Any]:
    """Return the hyperbolic tangent."""
    out: NDArray[Any] = np.tanh(as_floats(x))
    return out


def tanhshrink(x: ArrayLike) -> NDArray[Any]:
    """Return ``x - tanh(x)``."""
    values = as_floats(x)
    result: NDArray[Any] = values - np.tanh(values)
    return result


def hardtanh(x: ArrayLike, min_val: float = -1.0, max_val: float = 1.0) -> NDArray[Any]:
    """Return `x` limited to `min_val` … `max_val`."""
    result: NDArray[Any] = np.clip(as_floats(x), min_val, max_val)
    return result


def shrink(x: ArrayLike, lambd: float = 0.5, bias: float = 0.0) -> NDArray[Any]:
    """Return `x` moved by `bias` toward 0 where ``|x| > lambd``, 0 elsewhere."""
    values = as_floats(x)
    moved = values - np.sign(values) * _like(bias, values)
    result: NDArray[Any] = np.where(np.abs(values) <= lambd, _like(0, values), moved)
    return result


def hard_shrink(x: ArrayLike, lambd: float = 0.5) -> NDArray[Any]:
    """Return `x` where ``|x| > lambd``, 0 elsewhere."""
    return shrink(x, lambd)


def soft_shrink(x: ArrayLike, lambd: float = 0.5) -> NDArray[Any]:
    """Return `x` moved by `lambd` toward 0, and no further than 0."""
    return shrink(x, lambd, lambd)


def glu(x: ArrayLike, dim: int = -1) -> NDArray[Any]:
    """Return the first half of `x` along `dim` times the sigmoid of the second.

    Raises:
        ValueError: If the size along `dim` is odd.
    """
    values = as_floats(x)
    if values.shape[dim] % 2:
        raise ValueError(f"glu halves dimension {dim}, whose size is odd: {values.shape[dim]}")
    first, second = np.split(values, 2, axis=dim)
    result: NDArray[Any] = first * sigmoid(second)
    return result


def softmax(x: ArrayLike, dim: int = -1) -> NDArray[Any]:
    """Return ``e^x / Σ e^x`` along `dim`, without overflow."""
    values = as_floats(x)
    powers = np.exp(values - values.max(axis=dim, keepdims=True))
    out: NDArray[Any] = powers / powers.sum(axis=dim, keepdims=True)
    return out


def softmin(x: ArrayLike, dim: int = -1) -> NDArray[Any]:
    """Return ``softmax(-x)`` along `dim`."""
    return softmax(-as_floats(x), dim)


def quiet_softmax(x: ArrayLike, dim: int = -1) -> NDArray[Any]:
    """Return ``e^x / (1 + Σ e^x)`` along `dim`, without overflow: all may be near 0."""
    values = as_floats(x)
    top = np.maximum(values.max(axis=dim, keepdims=True), 0)
    powers = np.exp(values - top)
    out: NDArray[Any] = powers / (np.exp(-top) + powers.sum(axis=dim, keepdims=True))
    return out


def log_softmax(x: ArrayLike, dim: int = -1) -> NDArray[Any]:
    """Return ``log(softmax(x))`` along `dim`, without overflow or loss of small ones."""
    values = as_floats(x)
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


def _like(number: float, values: NDArray[Any]) -> Any:
    """Return `number` rounded to the dtype of `values`."""
    return values.dtype.type(number)
