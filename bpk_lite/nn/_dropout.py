"""Dropout, which does nothing at inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._module import Module

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Dropout"]


class Dropout(Module):
    """The identity: layers compute for inference only (records.md section 13).

    Attributes:
        prob: the probability with which training would zero an element.
    """

    def __init__(self, prob: float) -> None:
        if not 0.0 <= prob <= 1.0:
            raise ValueError(f"a dropout probability lies between 0 and 1, not at {prob}")
        self.prob = prob

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Return `x` itself."""
        return np.asarray(x)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"prob={self.prob}"
