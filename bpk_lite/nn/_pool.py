"""Max pooling: the maximum over shifted views, one for each cell of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._module import Module
from bpk_lite.nn._padding import Padding, as_pair, check_padding, pads_2d

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["MaxPool2d"]


class MaxPool2d(Module):
    """The maximum of each window (R122); padding never wins.

    In ceil mode a last window that is cut short counts. One that would begin behind the padded
    input, which takes a stride above the kernel size, has nothing to choose from and gives -inf.

    Attributes:
        kernel_size: height and width.
        stride: of height and width; the kernel size by default.
        padding: as given.
        dilation: of height and width.
        ceil_mode: whether a window that is cut short counts.
    """

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        *,
        stride: int | tuple[int, int] | None = None,
        padding: Padding = "Valid",
        dilation: int | tuple[int, int] = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = as_pair(kernel_size, "kernel_size")
        self.stride = self.kernel_size if stride is None else as_pair(stride, "stride")
        self.padding: Padding = check_padding(padding)
        self.dilation = as_pair(dilation, "dilation")
        self.ceil_mode = ceil_mode

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map floats ``[n, channels, h, w]`` to ``[n, channels, h', w']``.

        Raises:
            ValueError: If the rank is not 4, or the padded input is smaller than the kernel.
        """
        inputs = np.asarray(x)
        if inputs.ndim != 4:
            raise ValueError(
                f"MaxPool2d expects [n, channels, height, width], the input is {list(inputs.shape)}"
            )
        size = (inputs.shape[2], inputs.shape[3])
        pads = pads_2d(self.padding, size, self.kernel_size, self.stride)
        outs = [self._out(axis, size[axis] + sum(pads[axis])) for axis in (0, 1)]
        padded = self._pad(inputs, pads, outs)
        out: NDArray[Any] | None = None
        for row in range(self.kernel_size[0]):
            rows = self._cells(0, row, outs[0])
            for column in range(self.kernel_size[1]):
                cells = padded[:, :, rows, self._cells(1, column, outs[1])]
                # The first maximum is of two views, so `out` is never a view of the input.
                out = np.maximum(cells, cells) if out is None else np.maximum(out, cells, out=out)
        assert out is not None
        return out

    def _out(self, axis: int, size: int) -> int:
        room = size - self.dilation[axis] * (self.kernel_size[axis] - 1) - 1
        if room < 0:
            raise ValueError(
                f"the pool's kernel {self.kernel_size} with dilation {self.dilation} "
                f"is larger than the padded input, {size} along dimension {axis + 2}"
            )
        stride = self.stride[axis]
        return (-(-room // stride) if self.ceil_mode else room // stride) + 1

    def _pad(
        self, inputs: NDArray[Any], pads: tuple[tuple[int, int], tuple[int, int]], outs: list[int]
    ) -> NDArray[Any]:
        """Surround with -inf as far as the last window reaches; no copy when it ends inside."""
        sizes = []
        for axis, (before, after) in enumerate(pads):
            reach = self.stride[axis] * (outs[axis] - 1)
            reach += self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            sizes.append(max(before + inputs.shape[2 + axis] + after, reach))
        if tuple(sizes) == inputs.shape[2:]:
            return inputs
        padded = np.full((*inputs.shape[:2], *sizes), -np.inf, inputs.dtype)
        (top, _), (left, _) = pads
        high, wide = inputs.shape[2:]
        padded[:, :, top : top + high, left : left + wide] = inputs
        return padded

    def _cells(self, axis: int, place: int, count: int) -> slice:
        """Return where the cell at `place` of each of the `count` windows lies."""
        start, stride = place * self.dilation[axis], self.stride[axis]
        return slice(start, start + stride * (count - 1) + 1, stride)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        text = f"kernel {self.kernel_size[0]}x{self.kernel_size[1]}"
        if self.stride != self.kernel_size:
            text += f", stride {self.stride[0]}x{self.stride[1]}"
        if self.padding != "Valid":
            text += f", padding {self.padding}"
        if self.dilation != (1, 1):
            text += f", dilation {self.dilation[0]}x{self.dilation[1]}"
        return text + (", ceil mode" if self.ceil_mode else "")
