"""Scalars as Burn computes them, so that steps agree bit for bit (records.md, "What a step does").

Hyperparameters are binary32, the learning rate is binary64, and every scalar is rounded to the
tensor's dtype before it meets a tensor; numpy then rounds each operation once, as Burn does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Array", "f32", "power", "scalar", "tiny"]

Array = np.ndarray[Any, Any]
f32 = np.float32


def power(base: float | np.float32, exponent: int) -> np.float32:
    """Return ``base ** exponent`` in binary32 by repeated squaring, for exponents from 0."""
    factor, result = f32(base), f32(1)
    with np.errstate(all="ignore"):
        while True:
            if exponent & 1:
                result = f32(result * factor)
            exponent >>= 1
            if not exponent:
                return result
            factor = f32(factor * factor)


def scalar(value: float | np.floating[Any], like: Array) -> Any:
    """Return `value` rounded to the dtype of `like`; to 16 bits by way of binary32 (R29)."""
    if like.dtype.itemsize == 2:
        value = f32(value)
    return like.dtype.type(value)


def tiny(like: Array) -> np.floating[Any]:
    """Return the smallest positive normal number of the dtype that `like` is computed in."""
    return np.finfo(np.float64 if like.dtype == np.float64 else np.float32).tiny
