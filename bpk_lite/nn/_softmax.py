"""Activations along one dimension: the softmax in its kinds, and the gated linear unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpk_lite.nn import functional as F  # noqa: N812 - the short name that everybody uses
from bpk_lite.nn._activation import Options

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Glu", "LogSoftmax", "QuietSoftmax", "Softmax", "Softmin"]


@dataclass(eq=False, repr=False)
class Glu(Options):
    """The first half times the sigmoid of the second, along `dim` (R121)."""

    dim: int = -1

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.glu(x, self.dim)


@dataclass(eq=False, repr=False)
class Softmax(Options):
    """``e^x / Σ e^x`` along `dim` (R121)."""

    dim: int = -1

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.softmax(x, self.dim)


@dataclass(eq=False, repr=False)
class Softmin(Options):
    """``softmax(-x)`` along `dim` (R121)."""

    dim: int = -1

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.softmin(x, self.dim)


@dataclass(eq=False, repr=False)
class QuietSoftmax(Options):
    """``e^x / (1 + Σ e^x)`` along `dim` (R121)."""

    dim: int = -1

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.quiet_softmax(x, self.dim)


@dataclass(eq=False, repr=False)
class LogSoftmax(Options):
    """The logarithm of `Softmax` (R121)."""

    dim: int = -1

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.log_softmax(x, self.dim)
