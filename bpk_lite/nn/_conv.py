"""The convolutions, as matrix products over unfolded windows.

Goals: BLAS does the arithmetic; memory stays bounded whatever the batch; the common chain of conv,
norm, activation, pool needs no shuffling in between.

So windows are unfolded channels-last: each row of the matrix is one window in the order (row,
column, channel), copied in runs of ``kernel width x channels`` numbers, and the product comes out
channels-last too. It is handed on as a ``[n, channels, height, width]`` view of that, which numpy's
elementwise operations keep, so the next convolution finds its input in the right order already.
At most `WINDOW` bytes of unfolded input exist at a time (one output row of one image, if that is
more; a row is what lies at one place of the first dimension).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._module import Module
from bpk_lite.nn._padding import AXES, Padding, Sizes, as_sizes, by, check_padding, pads
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import DEFAULT, Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["WINDOW", "Conv1d", "Conv2d", "Conv3d", "check_groups"]

WINDOW: Final = 4 << 20  # bytes; more leaves the cache and is slower


class _Conv(Module):
    """What the three have in common: everything but the number of dimensions."""

    dims: ClassVar[int]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = "Valid",
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        initializer: Initializer = DEFAULT,
    ) -> None:
        check_groups(in_channels, out_channels, groups)
        kernel = as_sizes(kernel_size, self.dims, "kernel_size")
        cells = math.prod(kernel)
        fans = (in_channels // groups * cells, out_channels // groups * cells)
        self.weight = Param((out_channels, in_channels // groups, *kernel), initializer, fans=fans)
        self.bias = Param((out_channels,), initializer, fans=fans) if bias else None
        self.stride = as_sizes(stride, self.dims, "stride")
        self.padding: Padding = check_padding(padding, self.dims)
        self.dilation = as_sizes(dilation, self.dims, "dilation")
        self.groups = groups

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, in_channels, …]`` to ``[n, out_channels, …]``.

        The result is a view of a channels-last array.

        Raises:
            ValueError: If the rank or the channels differ, or the padded input is smaller than the
                kernel.
        """
        inputs = as_floats(x)
        channels = self.weight.shape[1] * self.groups
        if inputs.ndim != self.dims + 2 or inputs.shape[1] != channels:
            raise ValueError(
                f"{type(self).__name__} expects [n, {channels}, {', '.join(AXES[self.dims])}], "
                f"the input is {list(inputs.shape)}"
            )
        weight = self.weight.operand()
        windows = self._windows(inputs)
        place = windows.shape[: self.dims + 1]
        out = np.empty((*place, len(weight)), np.result_type(inputs, weight))
        matrix = _matrix(weight, self.groups)
        for images, rows in _pieces(windows):
            out[images, rows] = _product(windows[images, rows], matrix)
        if self.bias is not None:
            out += self.bias.operand()
        return out.transpose(0, self.dims + 1, *range(1, self.dims + 1))

    def _windows(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """View the padded input as ``[n, *output, *kernel, channel]``."""
        kernel, size = self.weight.shape[2:], inputs.shape[2:]
        around = pads(self.padding, size, kernel, self.stride)
        last = inputs.transpose(0, *range(2, self.dims + 2), 1)
        if any(map(any, around)):
            full = [n + before + after for n, (before, after) in zip(size, around, strict=True)]
            padded = np.zeros((len(last), *full, last.shape[-1]), inputs.dtype)
            inside = (
                slice(before, before + n) for n, (before, _) in zip(size, around, strict=True)
            )
            padded[(slice(None), *inside)] = last
        else:
            padded = np.ascontiguousarray(last)
        spans = tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, kernel, strict=True))
        if any(span > n for span, n in zip(spans, padded.shape[1:-1], strict=True)):
            raise ValueError(
                f"the kernel spans {by(spans)}, the padded input only {by(padded.shape[1:-1])}"
            )
        axes = tuple(range(1, self.dims + 1))
        windows = sliding_window_view(padded, spans, axis=axes)
        steps = [slice(None, None, step) for step in self.stride]
        gaps = [slice(None, None, gap) for gap in self.dilation]
        picked = windows[(slice(None), *steps, slice(None), *gaps)]
        kernels = range(self.dims + 2, 2 * self.dims + 2)
        return picked.transpose(*range(self.dims + 1), *kernels, self.dims + 1)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        out, channels, *kernel = self.weight.shape
        text = f"{channels * self.groups} -> {out}, kernel {by(kernel)}"
        if any(step != 1 for step in self.stride):
            text += f", stride {by(self.stride)}"
        if self.padding != "Valid":
            text += f", padding {self.padding}"
        if any(gap != 1 for gap in self.dilation):
            text += f", dilation {by(self.dilation)}"
        return text + (f", groups {self.groups}" if self.groups != 1 else "")


class Conv1d(_Conv):
    """Cross-correlation of ``[n, channels, length]`` with zero padding (R118, R119).

    Attributes:
        weight: F32 ``[out_channels, in_channels / groups, kernel]``.
        bias: F32 ``[out_channels]``, or None.
        stride: of each dimension.
        padding: as given.
        dilation: of each dimension.
        groups: how many parts the channels fall into.
    """

    dims = 1


class Conv2d(_Conv):
    """Cross-correlation of ``[n, channels, height, width]`` with zero padding (R118, R119).

    Attributes:
        weight: F32 ``[out_channels, in_channels / groups, kernel height, kernel width]``.
        bias: F32 ``[out_channels]``, or None.
        stride: of each dimension.
        padding: as given.
        dilation: of each dimension.
        groups: how many parts the channels fall into.
    """

    dims = 2


class Conv3d(_Conv):
    """Cross-correlation of ``[n, channels, depth, height, width]`` with zero padding (R118, R119).

    Attributes:
        weight: F32 ``[out_channels, in_channels / groups, *kernel]``.
        bias: F32 ``[out_channels]``, or None.
        stride: of each dimension.
        padding: as given.
        dilation: of each dimension.
        groups: how many parts the channels fall into.
    """

    dims = 3


def check_groups(in_channels: int, out_channels: int, groups: int) -> None:
    """Raise ValueError unless `groups` divides both channel counts."""
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ValueError(
            f"groups divides both channel counts, {in_channels} and {out_channels}: "
            f"{groups} does not"
        )


def _matrix(weight: NDArray[Any], groups: int) -> NDArray[Any]:
    """Lay the weight out as ``[group, cell x channel, out channel]``, channels varying fastest."""
    rows = weight.transpose(0, *range(2, weight.ndim), 1).reshape(groups, len(weight) // groups, -1)
    return rows.transpose(0, 2, 1)


def _pieces(windows: NDArray[Any]) -> list[tuple[slice, slice]]:
    """Cut images and output rows so that the windows of a piece fill at most `WINDOW` bytes."""
    n, high = windows.shape[:2]
    row = math.prod(windows.shape[2:]) * windows.itemsize
    if row * high <= WINDOW:
        step = max(1, WINDOW // max(1, row * high))
        return [(slice(i, i + step), slice(None)) for i in range(0, n, step)]
    step = max(1, WINDOW // row)
    return [(slice(i, i + 1), slice(j, j + step)) for i in range(n) for j in range(0, high, step)]


def _product(windows: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """Multiply each window with the weight of its group: ``[n, *output, out channel]``."""
    dims = windows.ndim // 2 - 1
    place, cells = windows.shape[: dims + 1], windows.shape[dims + 1 :]
    groups = len(matrix)
    out: Any
    if groups == 1:
        out = windows.reshape(-1, matrix.shape[1]) @ matrix[0]
    else:
        # Splitting the channels is a view, so the only copy is the one that unfolds.
        split = windows.reshape(*place, *cells[:-1], groups, cells[-1] // groups)
        axes = (windows.ndim - 1, *range(windows.ndim - 1), windows.ndim)
        parts = split.transpose(axes).reshape(groups, -1, matrix.shape[1])
        out = (parts @ matrix).transpose(1, 0, 2)
    result: NDArray[Any] = out.reshape(*place, -1)
    return result
