"""Pools over windows: the maximum or the mean over shifted views, one for each kernel cell."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._module import Module
from bpk_lite.nn._padding import AXES, Padding, Sizes, as_sizes, by, check_padding, pads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["AvgPool1d", "AvgPool2d", "MaxPool1d", "MaxPool2d"]


class _Pool(Module):
    """Where the windows of a pool lie (R122)."""

    dims: ClassVar[int]

    def __init__(
        self,
        kernel_size: Sizes,
        *,
        stride: Sizes | None = None,
        padding: Padding = "Valid",
        ceil_mode: bool = False,
        dilation: Sizes = 1,
    ) -> None:
        self.kernel_size = as_sizes(kernel_size, self.dims, "kernel_size")
        given = self.kernel_size if stride is None else stride
        self.stride = as_sizes(given, self.dims, "stride")
        self.padding: Padding = check_padding(padding, self.dims)
        self.dilation = as_sizes(dilation, self.dims, "dilation")
        self.ceil_mode = ceil_mode

    def _padded(self, x: ArrayLike, filling: float) -> tuple[NDArray[Any], list[tuple[int, int]]]:
        """Return the input, surrounded by `filling` as far as windows reach, and the pads.

        No copy when the last window ends inside.
        """
        inputs = as_floats(x)
        if inputs.ndim != self.dims + 2:
            raise ValueError(
                f"{type(self).__name__} expects [n, channels, {', '.join(AXES[self.dims])}], "
                f"the input is {list(inputs.shape)}"
            )
        size = inputs.shape[2:]
        around = pads(self.padding, size, self.kernel_size, self.stride)
        sizes = [
            max(n + sum(pad), self._reach(axis, self._out(axis, n + sum(pad))))
            for axis, (n, pad) in enumerate(zip(size, around, strict=True))
        ]
        if tuple(sizes) == size:
            return inputs, around
        padded = np.full((*inputs.shape[:2], *sizes), filling, inputs.dtype)
        inside = (slice(pad[0], pad[0] + n) for n, pad in zip(size, around, strict=True))
        place: tuple[Any, ...] = (..., *inside)
        padded[place] = inputs
        return padded, around

    def _outs(self, size: Sequence[int], around: list[tuple[int, int]]) -> list[int]:
        return [
            self._out(axis, n + sum(pad))
            for axis, (n, pad) in enumerate(zip(size, around, strict=True))
        ]

    def _out(self, axis: int, size: int) -> int:
        """Return the number of windows over a padded length."""
        room = size - self.dilation[axis] * (self.kernel_size[axis] - 1) - 1
        if room < 0:
            raise ValueError(
                f"the pool's kernel {by(self.kernel_size)} with dilation {by(self.dilation)} "
                f"is larger than the padded input, {size} along dimension {axis + 2}"
            )
        stride = self.stride[axis]
        return (-(-room // stride) if self.ceil_mode else room // stride) + 1

    def _reach(self, axis: int, count: int) -> int:
        """Return where the last of `count` windows ends."""
        inner = self.dilation[axis] * (self.kernel_size[axis] - 1)
        return self.stride[axis] * (count - 1) + inner + 1

    def _cells(self, outs: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """Yield where one cell of each window lies, for each cell of the kernel."""
        for cell in itertools.product(*map(range, self.kernel_size)):
            starts = (place * gap for place, gap in zip(cell, self.dilation, strict=True))
            places = (
                slice(start, start + step * (count - 1) + 1, step)
                for start, step, count in zip(starts, self.stride, outs, strict=True)
            )
            yield (..., *places)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        text = f"kernel {by(self.kernel_size)}"
        if self.stride != self.kernel_size:
            text += f", stride {by(self.stride)}"
        if self.padding != "Valid":
            text += f", padding {self.padding}"
        if any(gap != 1 for gap in self.dilation):
            text += f", dilation {by(self.dilation)}"
        return text + (", ceil mode" if self.ceil_mode else "")


class _MaxPool(_Pool):
    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map floats ``[n, channels, …]`` to ``[n, channels, …]``.

        Raises:
            ValueError: If the rank differs, or the padded input is smaller than the kernel.
        """
        padded, around = self._padded(x, -np.inf)
        out: NDArray[Any] | None = None
        for cell in self._cells(self._outs(np.shape(x)[2:], around)):
            cells = padded[cell]
            # The first maximum is of two views, so `out` is never a view of the input.
            out = np.maximum(cells, cells) if out is None else np.maximum(out, cells, out=out)
        assert out is not None
        return out


class MaxPool1d(_MaxPool):
    """The maximum of each window of ``[n, channels, length]`` (R122); padding never wins.

    Attributes:
        kernel_size: one number.
        stride: the kernel size by default.
        padding: as given.
        dilation: between the cells of a window.
        ceil_mode: whether a window that is cut short counts.
    """

    dims = 1


class MaxPool2d(_MaxPool):
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

    dims = 2


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        *,
        stride: Sizes | None = None,
        padding: Padding = "Valid",
        count_include_pad: bool = True,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode)
        self.count_include_pad = count_include_pad

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, channels, …]`` to ``[n, channels, …]``.

        Raises:
            ValueError: If the rank differs, or the padded input is smaller than the kernel.
        """
        padded, around = self._padded(x, 0)
        size = np.shape(x)[2:]
        outs = self._outs(size, around)
        out = np.zeros((*padded.shape[:2], *outs), padded.dtype)
        for cell in self._cells(outs):
            out += padded[cell]
        for axis, count in enumerate(outs):
            counts = self._counts(axis, count, size[axis], around[axis])
            # One dimension after the other: the number of cells is the product of both.
            out /= counts.astype(out.dtype).reshape(-1, *(1,) * (self.dims - 1 - axis))
        return out

    def _counts(self, axis: int, count: int, size: int, pad: tuple[int, int]) -> NDArray[Any]:
        """Return how many cells of each window count along one dimension (R122)."""
        before, after = pad
        low, high = (0, before + size + after)
        if not self.count_include_pad:
            low, high = before, before + size
        starts = np.arange(count) * self.stride[axis]
        ends = starts + self.kernel_size[axis]
        counts = np.minimum(ends, high) - np.maximum(starts, low)
        result: NDArray[Any] = np.maximum(counts, 1)  # a window behind the input sums up nothing
        return result

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        text = super().extra_repr()
        return text if self.count_include_pad else f"{text}, padding not counted"


class AvgPool1d(_AvgPool):
    """The mean of each window of ``[n, channels, length]`` (R122).

    Attributes:
        kernel_size: one number.
        stride: the kernel size by default.
        padding: as given.
        count_include_pad: whether cells of the padding count; those that only ceil mode adds never
            do.
        ceil_mode: whether a window that is cut short counts.
    """

    dims = 1


class AvgPool2d(_AvgPool):
    """The mean of each window of ``[n, channels, height, width]`` (R122).

    Attributes:
        kernel_size: height and width.
        stride: of height and width; the kernel size by default.
        padding: as given.
        count_include_pad: whether cells of the padding count; those that only ceil mode adds never
            do.
        ceil_mode: whether a window that is cut short counts.
    """

    dims = 2
