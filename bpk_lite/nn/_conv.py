"""The 2-D convolution, as matrix products over unfolded windows.

Goals: BLAS does the arithmetic; memory stays bounded whatever the batch; the common chain of conv,
norm, activation, pool needs no shuffling in between.

So windows are unfolded channels-last: each row of the matrix is one window in the order (row,
column, channel), copied in runs of ``kernel width x channels`` numbers, and the product comes out
channels-last too. It is handed on as a ``[n, channels, height, width]`` view of that, which numpy's
elementwise operations keep, so the next convolution finds its input in the right order already.
At most `WINDOW` bytes of unfolded input exist at a time (one output row of one image, if that is
more).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bpk_lite.nn._module import Module
from bpk_lite.nn._padding import Padding, as_pair, check_padding, pads_2d
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import DEFAULT, Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["WINDOW", "Conv2d"]

WINDOW: Final = 4 << 20  # bytes; more leaves the cache and is slower


class Conv2d(Module):
    """Cross-correlation with zero padding (R118, R119).

    Attributes:
        weight: F32 ``[out_channels, in_channels / groups, kernel height, kernel width]``.
        bias: F32 ``[out_channels]``, or None.
        stride: of height and width.
        padding: as given.
        dilation: of height and width.
        groups: how many parts the channels fall into.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        *,
        stride: int | tuple[int, int] = 1,
        padding: Padding = "Valid",
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        initializer: Initializer = DEFAULT,
    ) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"groups divides both channel counts, {in_channels} and {out_channels}: "
                f"{groups} does not"
            )
        high, wide = as_pair(kernel_size, "kernel_size")
        cells = high * wide
        fans = (in_channels // groups * cells, out_channels // groups * cells)
        shape = (out_channels, in_channels // groups, high, wide)
        self.weight = Param(shape, initializer, fans=fans)
        self.bias = Param((out_channels,), initializer, fans=fans) if bias else None
        self.stride = as_pair(stride, "stride")
        self.padding: Padding = check_padding(padding)
        self.dilation = as_pair(dilation, "dilation")
        self.groups = groups

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, in_channels, h, w]`` to ``[n, out_channels, h', w']``.

        The result is a view of a channels-last array.

        Raises:
            ValueError: If the rank or the channels differ, or the padded input is smaller than the
                kernel.
        """
        inputs = np.asarray(x)
        channels = self.weight.shape[1] * self.groups
        if inputs.ndim != 4 or inputs.shape[1] != channels:
            raise ValueError(
                f"Conv2d expects [n, {channels}, height, width], the input is {list(inputs.shape)}"
            )
        weight = self.weight.operand()
        windows = self._windows(inputs)
        n, high, wide = windows.shape[:3]
        out = np.empty((n, high, wide, len(weight)), np.result_type(inputs, weight))
        matrix = _matrix(weight, self.groups)
        for images, rows in _pieces(windows):
            out[images, rows] = _product(windows[images, rows], matrix)
        if self.bias is not None:
            out += self.bias.operand()
        return out.transpose(0, 3, 1, 2)

    def _windows(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """View the padded input as ``[n, out height, out width, row, column, channel]``."""
        kernel = self.weight.shape[2:]
        size = inputs.shape[2:]
        (top, bottom), (left, right) = pads_2d(
            self.padding, (size[0], size[1]), (kernel[0], kernel[1]), self.stride
        )
        last = inputs.transpose(0, 2, 3, 1)
        if top or bottom or left or right:
            n, high, wide, channels = last.shape
            shape = (n, high + top + bottom, wide + left + right, channels)
            padded = np.zeros(shape, inputs.dtype)
            padded[:, top : top + high, left : left + wide] = last
        else:
            padded = np.ascontiguousarray(last)
        spans = tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, kernel, strict=True))
        if spans[0] > padded.shape[1] or spans[1] > padded.shape[2]:
            raise ValueError(
                f"the kernel spans {spans[0]}x{spans[1]}, "
                f"the padded input only {padded.shape[1]}x{padded.shape[2]}"
            )
        windows = sliding_window_view(padded, spans, axis=(1, 2))
        (down, across), (gap_down, gap_across) = self.stride, self.dilation
        picked = windows[:, ::down, ::across, :, ::gap_down, ::gap_across]
        return picked.transpose(0, 1, 2, 4, 5, 3)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        out, channels, high, wide = self.weight.shape
        text = f"{channels * self.groups} -> {out}, kernel {high}x{wide}"
        if self.stride != (1, 1):
            text += f", stride {self.stride[0]}x{self.stride[1]}"
        if self.padding != "Valid":
            text += f", padding {self.padding}"
        if self.dilation != (1, 1):
            text += f", dilation {self.dilation[0]}x{self.dilation[1]}"
        return text + (f", groups {self.groups}" if self.groups != 1 else "")


def _matrix(weight: NDArray[Any], groups: int) -> NDArray[Any]:
    """Lay the weight out as ``[group, row x column x channel, out channel]``."""
    rows = weight.transpose(0, 2, 3, 1).reshape(groups, len(weight) // groups, -1)
    return rows.transpose(0, 2, 1)


def _pieces(windows: NDArray[Any]) -> list[tuple[slice, slice]]:
    """Cut images and output rows so that the windows of a piece fill at most `WINDOW` bytes."""
    n, high = windows.shape[:2]
    row = int(np.prod(windows.shape[2:])) * windows.itemsize
    if row * high <= WINDOW:
        step = max(1, WINDOW // max(1, row * high))
        return [(slice(i, i + step), slice(None)) for i in range(0, n, step)]
    step = max(1, WINDOW // row)
    return [(slice(i, i + 1), slice(j, j + step)) for i in range(n) for j in range(0, high, step)]


def _product(windows: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """Multiply each window with the weight of its group: ``[n, height, width, out channel]``."""
    place, cells = windows.shape[:3], windows.shape[3:]
    groups = len(matrix)
    out: NDArray[Any]
    if groups == 1:
        out = windows.reshape(-1, matrix.shape[1]) @ matrix[0]
    else:
        parts = windows.reshape(-1, *cells[:2], groups, cells[2] // groups)
        parts = parts.transpose(3, 0, 1, 2, 4).reshape(groups, -1, matrix.shape[1])
        out = (parts @ matrix).transpose(1, 0, 2)
    return out.reshape(*place, -1)
