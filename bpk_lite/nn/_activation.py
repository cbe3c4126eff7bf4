"""Activations as modules; they have no params."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpk_lite.nn._module import Module
from bpk_lite.nn.functional import gelu, relu

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Gelu", "Relu"]


class Relu(Module):
    """Rectified linear unit: ``max(x, 0)`` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array of any shape."""
        return relu(x)


class Gelu(Module):
    """Gaussian error linear unit, exact or approximated by tanh (R121)."""

    def __init__(self, *, approximate: bool = False) -> None:
        self.approximate = approximate

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array of any shape."""
        return gelu(x, approximate=self.approximate)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return "approximate" if self.approximate else ""
