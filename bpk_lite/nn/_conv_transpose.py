"""The transposed convolutions: one matrix product, then a sum of shifted copies.

Each input place sends a patch of the kernel's size to the output. All patches come from one product
of two matrices; the loop that adds them goes over the cells of the kernel, never over places.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._conv import check_groups
from bpk_lite.nn._module import Module
from bpk_lite.nn._padding import AXES, Sizes, as_sizes, by
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import DEFAULT, Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTranspose(Module):
    """What the three have in common: everything but the number of dimensions."""

    dims: ClassVar[int]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        *,
        stride: Sizes = 1,
        padding: Sizes = 0,
        padding_out: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        initializer: Initializer = DEFAULT,
    ) -> None:
        check_groups(in_channels, out_channels, groups)
        kernel = as_sizes(kernel_size, self.dims, "kernel_size")
        cells = math.prod(kernel)
        fans = (out_channels // groups * cells, in_channels // groups * cells)
        self.weight = Param((in_channels, out_channels // groups, *kernel), initializer, fans=fans)
        self.bias = Param((out_channels,), initializer, fans=fans) if bias else None
        self.stride = as_sizes(stride, self.dims, "stride")
        self.padding = as_sizes(padding, self.dims, "padding", 0)
        self.padding_out = as_sizes(padding_out, self.dims, "padding_out", 0)
        self.dilation = as_sizes(dilation, self.dims, "dilation")
        self.groups = groups

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, in_channels, …]`` to ``[n, out_channels, …]``; sizes as in R119.

        Raises:
            ValueError: If the rank or the channels differ, or the padding leaves no output.
        """
        inputs = as_floats(x)
        channels, part, *kernel = self.weight.shape
        if inputs.ndim != self.dims + 2 or inputs.shape[1] != channels:
            raise ValueError(
                f"{type(self).__name__} expects [n, {channels}, {', '.join(AXES[self.dims])}], "
                f"the input is {list(inputs.shape)}"
            )
        n, size, groups = len(inputs), inputs.shape[2:], self.groups
        full = [
            (s - 1) * step + gap * (k - 1) + 1 + more
            for s, step, gap, k, more in zip(
                size, self.stride, self.dilation, kernel, self.padding_out, strict=True
            )
        ]
        ends = [length - pad for length, pad in zip(full, self.padding, strict=True)]
        if any(end <= pad for end, pad in zip(ends, self.padding, strict=True)):
            raise ValueError(
                f"padding {by(self.padding)} leaves nothing of an output of {by(full)}"
            )
        weight = self.weight.operand()
        rows = inputs.reshape(n, groups, channels // groups, math.prod(size))
        columns = weight.reshape(groups, channels // groups, -1).transpose(0, 2, 1)
        patches = (columns @ rows).reshape(n, groups, part, *kernel, *size)
        out = np.zeros((n, groups, part, *full), patches.dtype)
        for cell in itertools.product(*map(range, kernel)):
            places = (
                slice(at * gap, at * gap + step * (s - 1) + 1, step)
                for at, gap, step, s in zip(cell, self.dilation, self.stride, size, strict=True)
            )
            target: tuple[Any, ...] = (..., *places)
            out[target] += patches[(slice(None),) * 3 + cell]
        out = out.reshape(n, groups * part, *full)
        inside = (slice(pad, end) for pad, end in zip(self.padding, ends, strict=True))
        cropped: tuple[Any, ...] = (..., *inside)
        out = out[cropped]
        if self.bias is not None:
            out = out + self.bias.operand().reshape(-1, *(1,) * self.dims)
        result: NDArray[Any] = out
        return result

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        channels, part, *kernel = self.weight.shape
        text = f"{channels} -> {part * self.groups}, kernel {by(kernel)}"
        for name, usual in (("stride", 1), ("padding", 0), ("padding_out", 0), ("dilation", 1)):
            sizes = getattr(self, name)
            if any(size != usual for size in sizes):
                text += f", {name} {by(sizes)}"
        return text + (f", groups {self.groups}" if self.groups != 1 else "")


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of ``[n, channels, length]`` (R119).

    Attributes:
        weight: F32 ``[in_channels, out_channels / groups, kernel]``.
        bias: F32 ``[out_channels]``, or None.
        stride, padding, padding_out, dilation: of each dimension.
        groups: how many parts the channels fall into.
    """

    dims = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of ``[n, channels, height, width]`` (R119).

    Attributes:
        weight: F32 ``[in_channels, out_channels / groups, *kernel]``.
        bias: F32 ``[out_channels]``, or None.
        stride, padding, padding_out, dilation: of each dimension.
        groups: how many parts the channels fall into.
    """

    dims = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of ``[n, channels, depth, height, width]`` (R119).

    Attributes:
        weight: F32 ``[in_channels, out_channels / groups, *kernel]``.
        bias: F32 ``[out_channels]``, or None.
        stride, padding, padding_out, dilation: of each dimension.
        groups: how many parts the channels fall into.
    """

    dims = 3
