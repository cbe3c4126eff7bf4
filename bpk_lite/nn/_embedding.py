"""The table of vectors that integers look up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._module import Module
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import Initializer, Normal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Embedding"]


class Embedding(Module):
    """Row i of the weight for each integer i.

    Attributes:
        weight: F32 ``[n_embedding, d_model]``.
    """

    def __init__(
        self, n_embedding: int, d_model: int, *, initializer: Initializer | None = None
    ) -> None:
        drawn = Normal(0.0, 1.0) if initializer is None else initializer
        self.weight = Param((n_embedding, d_model), drawn, fans=(n_embedding, d_model))

    def forward(self, ids: ArrayLike) -> NDArray[Any]:
        """Map integers ``[…]`` to ``[…, d_model]``.

        Raises:
            ValueError: If they are no integers, or one is negative or too high.
        """
        places = np.asarray(ids)
        if places.dtype.kind not in "iu":
            raise ValueError(f"Embedding expects integers, the input is {places.dtype}")
        weight = self.weight.operand()
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < len(weight):
            raise ValueError(
                f"Embedding expects 0 to {len(weight) - 1}, the input has "
                f"{places.min()} to {places.max()}"
            )
        out: NDArray[Any] = weight[places]
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        n_embedding, d_model = self.weight.shape
        return f"{n_embedding} x {d_model}"
