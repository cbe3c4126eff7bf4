"""The two activations that have params."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from bpk_lite.nn._linear import Linear
from bpk_lite.nn._module import Module
from bpk_lite.nn._param import Param
from bpk_lite.nn.functional import prelu, silu
from bpk_lite.nn.init import DEFAULT, Constant, Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["PRelu", "SwiGlu"]


class PRelu(Module):
    """``x``, times a learnt slope below 0 (R121).

    Attributes:
        alpha: F32 ``[num_parameters]``: one slope for all, or one for each channel of dimension 1.
    """

    def __init__(self, num_parameters: int = 1, *, alpha: float = 0.25) -> None:
        self.alpha = Param((num_parameters,), Constant(alpha))

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Apply to an array of any shape with one slope, to ``[n, channels, …]`` with several.

        Raises:
            ValueError: If the channels are not as many as the slopes.
        """
        return prelu(x, self.alpha.operand())

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return str(self.alpha.shape[0])


class SwiGlu(Module):
    """``silu(inner(x)) · outer(x)`` with two linear layers (R121).

    Attributes:
        linear_inner: `Linear`, ``d_input -> d_output``.
        linear_outer: `Linear`, ``d_input -> d_output``.
    """

    def __init__(
        self,
        d_input: int,
        d_output: int,
        *,
        bias: bool = False,
        layout: Literal["Row", "Col"] = "Row",
        initializer: Initializer = DEFAULT,
    ) -> None:
        self.linear_inner = Linear(
            d_input, d_output, bias=bias, layout=layout, initializer=initializer
        )
        self.linear_outer = Linear(
            d_input, d_output, bias=bias, layout=layout, initializer=initializer
        )

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[…, d_input]`` to ``[…, d_output]``.

        Raises:
            ValueError: If the last dimension is not `d_input`.
        """
        result: NDArray[Any] = silu(self.linear_inner.forward(x)) * self.linear_outer.forward(x)
        return result
