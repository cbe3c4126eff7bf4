"""The linear layer, in both of Burn's layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._form import IDENTITY, TRANSPOSED
from bpk_lite.nn._module import Module
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import DEFAULT, Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Linear"]


class Linear(Module):
    """``x · weight + bias`` over the last dimension (R119).

    The live weight is ``[d_input, d_output]`` in both layouts. ``"Row"`` saves it so; ``"Col"``
    saves its transpose ``[d_output, d_input]`` (R20), which loads back without a copy.

    Attributes:
        weight: F32 ``[d_input, d_output]``.
        bias: F32 ``[d_output]``, or None.
        layout: ``"Row"`` or ``"Col"``.
    """

    def __init__(
        self,
        d_input: int,
        d_output: int,
        *,
        bias: bool = True,
        layout: Literal["Row", "Col"] = "Row",
        initializer: Initializer = DEFAULT,
    ) -> None:
        if layout not in {"Row", "Col"}:
            raise ValueError(f'a linear layout is "Row" or "Col", not {layout!r}')
        fans = (d_input, d_output)
        form = TRANSPOSED if layout == "Col" else IDENTITY
        self.weight = Param((d_input, d_output), initializer, fans=fans, form=form)
        self.bias = Param((d_output,), initializer, fans=fans) if bias else None
        self.layout = layout

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[…, d_input]`` to ``[…, d_output]``.

        Raises:
            ValueError: If the last dimension is not `d_input`.
        """
        inputs = as_floats(x)
        d_input, d_output = self.weight.shape
        if inputs.shape[-1:] != (d_input,):
            raise ValueError(f"Linear expects […, {d_input}], the input is {list(inputs.shape)}")
        # One product of two matrices: numpy would multiply a batch of matrices one by one.
        out: NDArray[Any] = inputs.reshape(-1, d_input) @ self.weight.operand()
        if self.bias is not None:
            out = out + self.bias.operand()
        return out.reshape(*inputs.shape[:-1], d_output)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        d_input, d_output = self.weight.shape
        return f"{d_input} -> {d_output}" + (", Col" if self.layout == "Col" else "")
