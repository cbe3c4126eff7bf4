"""Gradient clipping, per param (R95)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bpk_lite.optim._numbers import Array, f32, scalar, tiny

__all__ = ["ClipNorm", "ClipValue", "Clipping"]


@dataclass(frozen=True, slots=True)
class ClipValue:
    """Clip each element to -threshold … threshold; NaN stays."""

    threshold: float

    def clip(self, grad: Array) -> Array:
        """Return the clipped gradient."""
        limit = scalar(f32(self.threshold), grad)
        return np.where(grad > limit, limit, np.where(grad < -limit, -limit, grad))


@dataclass(frozen=True, slots=True)
class ClipNorm:
    """Scale the gradient of one param so that its own norm is at most `threshold`.

    Burn's, and ours, is the norm of each param alone, not of the whole module.
    """

    threshold: float

    def clip(self, grad: Array) -> Array:
        """Return the clipped gradient."""
        work = grad.astype(np.float32) if grad.dtype.itemsize == 2 else grad
        norm = np.sqrt(np.sum(work * work, dtype=work.dtype))
        factor = scalar(f32(self.threshold), work) / (norm + scalar(tiny(work), work))
        clipped: Array = work * np.minimum(factor, work.dtype.type(1))
        return clipped.astype(grad.dtype, copy=False)


Clipping: TypeAlias = ClipValue | ClipNorm
