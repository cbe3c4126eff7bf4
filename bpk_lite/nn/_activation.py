"""Activations as modules without params; each applies the function of its name.

They are dataclasses for their options only: a module is equal to itself alone, and draws its own
`repr`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from bpk_lite.nn import functional as F  # noqa: N812 - the short name that everybody uses
from bpk_lite.nn._module import Module

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Celu",
    "Elu",
    "Gelu",
    "HardShrink",
    "HardSigmoid",
    "HardSwish",
    "Hardtanh",
    "LeakyRelu",
    "LogSigmoid",
    "Mish",
    "Relu",
    "Relu6",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Silu",
    "SoftShrink",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "ThresholdedRelu",
]


class Options(Module):
    """A module whose fields are its options, shown in `repr`."""

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        shown = ((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return ", ".join(f"{name}={value}" for name, value in shown)


@dataclass(eq=False, repr=False)
class Relu(Options):
    """Rectified linear unit: ``max(x, 0)`` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.relu(x)


@dataclass(eq=False, repr=False)
class Relu6(Options):
    """``x`` limited to 0 … 6 (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.relu6(x)


@dataclass(eq=False, repr=False)
class LeakyRelu(Options):
    """``x``, times a slope below 0 (R121)."""

    negative_slope: float = 0.01

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.leaky_relu(x, self.negative_slope)


@dataclass(eq=False, repr=False)
class ThresholdedRelu(Options):
    """``x`` above a threshold, 0 elsewhere (R121)."""

    alpha: float = 1.0

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.thresholded_relu(x, self.alpha)


@dataclass(eq=False, repr=False)
class Elu(Options):
    """``x``, and ``alpha · (e^x - 1)`` below 0 (R121)."""

    alpha: float = 1.0

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.elu(x, self.alpha)


@dataclass(eq=False, repr=False)
class Celu(Options):
    """``x``, and ``alpha · (e^(x/alpha) - 1)`` below 0 (R121)."""

    alpha: float = 1.0

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.celu(x, self.alpha)


@dataclass(eq=False, repr=False)
class Selu(Options):
    """The self-normalizing `Elu` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.selu(x)


@dataclass(eq=False, repr=False)
class Sigmoid(Options):
    """``1 / (1 + e^-x)`` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.sigmoid(x)


@dataclass(eq=False, repr=False)
class LogSigmoid(Options):
    """The logarithm of `Sigmoid` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.log_sigmoid(x)


@dataclass(eq=False, repr=False)
class HardSigmoid(Options):
    """``alpha · x + beta`` limited to 0 … 1 (R121)."""

    alpha: float = 0.2
    beta: float = 0.5

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.hard_sigmoid(x, self.alpha, self.beta)


@dataclass(eq=False, repr=False)
class Silu(Options):
    """``x · sigmoid(x)``, also called swish (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.silu(x)


@dataclass(eq=False, repr=False)
class HardSwish(Options):
    """``x · clamp(x/6 + 1/2, 0, 1)`` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.hard_swish(x)


@dataclass(eq=False, repr=False)
class Softplus(Options):
    """``log(1 + e^(beta·x)) / beta`` (R121)."""

    beta: float = 1.0

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.softplus(x, self.beta)


@dataclass(eq=False, repr=False)
class Mish(Options):
    """``x · tanh(softplus(x))`` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.mish(x)


@dataclass(eq=False, repr=False)
class Softsign(Options):
    """``x / (1 + |x|)`` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.softsign(x)


@dataclass(eq=False, repr=False)
class Tanh(Options):
    """The hyperbolic tangent (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.tanh(x)


@dataclass(eq=False, repr=False)
class Tanhshrink(Options):
    """``x - tanh(x)`` (R121)."""

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.tanhshrink(x)


@dataclass(eq=False, repr=False)
class Hardtanh(Options):
    """``x`` limited to a range (R121)."""

    min_val: float = -1.0
    max_val: float = 1.0

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.hardtanh(x, self.min_val, self.max_val)


@dataclass(eq=False, repr=False)
class Shrink(Options):
    """``x`` moved by `bias` toward 0 outside ±`lambd`, 0 inside (R121)."""

    lambd: float = 0.5
    bias: float = 0.0

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.shrink(x, self.lambd, self.bias)


@dataclass(eq=False, repr=False)
class HardShrink(Options):
    """``x`` outside ±`lambd`, 0 inside (R121)."""

    lambd: float = 0.5

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.hard_shrink(x, self.lambd)


@dataclass(eq=False, repr=False)
class SoftShrink(Options):
    """``x`` moved by `lambd` toward 0 (R121)."""

    lambd: float = 0.5

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array."""
        return F.soft_shrink(x, self.lambd)


class Gelu(Module):
    """Gaussian error linear unit, exact or approximated by tanh (R121)."""

    def __init__(self, *, approximate: bool = False) -> None:
        self.approximate = approximate

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array of any shape."""
        return F.gelu(x, approximate=self.approximate)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return "approximate" if self.approximate else ""
