"""What layers take as input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["as_floats"]


def as_floats(x: ArrayLike) -> NDArray[Any]:
    """Return `x` as an array to compute with: floats as they are, integers and BF16 as float32."""
    values = np.asarray(x)
    return values if values.dtype.kind == "f" else values.astype(np.float32)
