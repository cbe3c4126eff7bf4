"""The deformable convolution: every cell of every window looks at a place of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._conv import check_groups
from bpk_lite.nn._module import Module
from bpk_lite.nn._padding import Padding, Sizes, as_sizes, by, check_padding, pads
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import DEFAULT, Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["DeformConv2d"]


class DeformConv2d(Module):
    """Cross-correlation whose windows are bent by an offset for each cell (Dai and others, 2017).

    A cell that points between four places takes their bilinear mean; places outside the input count
    as 0. With a mask each cell is weighted too (version 2 of the paper).

    Attributes:
        weight: F32 ``[out_channels, in_channels / weight_groups, kernel height, kernel width]``.
        bias: F32 ``[out_channels]``, or None.
        stride: of height and width.
        padding: as given.
        dilation: of height and width.
        weight_groups: how many parts the channels fall into for the product.
        offset_groups: how many parts the input channels fall into for the offsets.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = "Valid",
        dilation: Sizes = 1,
        weight_groups: int = 1,
        offset_groups: int = 1,
        bias: bool = True,
        initializer: Initializer = DEFAULT,
    ) -> None:
        check_groups(in_channels, out_channels, weight_groups)
        check_groups(in_channels, in_channels, offset_groups)
        high, wide = as_sizes(kernel_size, 2, "kernel_size")
        cells = high * wide
        fans = (in_channels // weight_groups * cells, out_channels // weight_groups * cells)
        shape = (out_channels, in_channels // weight_groups, high, wide)
        self.weight = Param(shape, initializer, fans=fans)
        self.bias = Param((out_channels,), initializer, fans=fans) if bias else None
        self.stride = as_sizes(stride, 2, "stride")
        self.padding: Padding = check_padding(padding, 2)
        self.dilation = as_sizes(dilation, 2, "dilation")
        self.weight_groups = weight_groups
        self.offset_groups = offset_groups

    def forward(
        self, x: ArrayLike, offset: ArrayLike, mask: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Map ``[n, in_channels, h, w]`` to ``[n, out_channels, h', w']``.

        Args:
            x: the input.
            offset: ``[n, offset_groups · cells · 2, h', w']``: for each group and each cell of the
                kernel, row by row, how far down and how far right it moves.
            mask: ``[n, offset_groups · cells, h', w']``: a weight for each cell, or None.

        Raises:
            ValueError: If a shape does not fit.
        """
        inputs, moves = as_floats(x), as_floats(offset)
        channels = self.weight.shape[1] * self.weight_groups
        if inputs.ndim != 4 or inputs.shape[1] != channels:
            raise ValueError(
                f"DeformConv2d expects [n, {channels}, height, width], "
                f"the input is {list(inputs.shape)}"
            )
        kernel, size = self.weight.shape[2:], inputs.shape[2:]
        around = pads(self.padding, size, kernel, self.stride)
        outs = [
            (n + sum(pad) - gap * (k - 1) - 1) // step + 1
            for n, pad, gap, k, step in zip(
                size, around, self.dilation, kernel, self.stride, strict=True
            )
        ]
        if min(outs) < 1:
            raise ValueError(f"a kernel of {by(kernel)} does not fit an input of {by(size)}")
        n, groups, cells = len(inputs), self.offset_groups, kernel[0] * kernel[1]
        _expect("offset", moves, (n, groups * cells * 2, *outs))
        moves = moves.reshape(n, groups, *kernel, 2, *outs)
        starts = [self._starts(axis, around[axis][0], outs[axis]) for axis in (0, 1)]
        rows = starts[0][:, None, :, None] + moves[:, :, :, :, 0]
        columns = starts[1][None, :, None, :] + moves[:, :, :, :, 1]
        sampled = _bilinear(inputs.reshape(n, groups, channels // groups, *size), rows, columns)
        if mask is not None:
            weights = as_floats(mask)
            _expect("mask", weights, (n, groups * cells, *outs))
            sampled = sampled * weights.reshape(n, groups, 1, *kernel, *outs)
        return self._product(sampled.reshape(n, channels, cells, outs[0] * outs[1]), outs)

    def _starts(self, axis: int, before: int, count: int) -> NDArray[Any]:
        """Return where each kernel cell of each window lies without offsets: ``[cell, window]``."""
        cells = np.arange(self.weight.shape[2 + axis]) * self.dilation[axis] - before
        starts: NDArray[Any] = cells[:, None] + np.arange(count) * self.stride[axis]
        return starts

    def _product(self, sampled: NDArray[Any], outs: list[int]) -> NDArray[Any]:
        weight, groups = self.weight.operand(), self.weight_groups
        n, channels, cells, places = sampled.shape
        parts = sampled.reshape(n, groups, channels // groups * cells, places)
        out: NDArray[Any] = weight.reshape(groups, len(weight) // groups, -1) @ parts
        out = out.reshape(n, len(weight), *outs)
        return out if self.bias is None else out + self.bias.operand()[:, None, None]

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        out, channels, *kernel = self.weight.shape
        return f"{channels * self.weight_groups} -> {out}, kernel {by(kernel)}"


def _expect(what: str, found: NDArray[Any], shape: tuple[int, ...]) -> None:
    if found.shape != shape:
        raise ValueError(f"the {what} must be {list(shape)}, it is {list(found.shape)}")


def _bilinear(images: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """Sample ``[n, group, channel, h, w]`` at ``[n, group, …]``: ``[n, group, channel, …]``."""
    n, groups, channels, high, wide = images.shape
    flat = images.reshape(n, groups, channels, high * wide)
    top, left = np.floor(rows), np.floor(columns)
    out = np.zeros((n, groups, channels, *rows.shape[2:]), np.result_type(images, rows))
    for down in (0, 1):
        for right in (0, 1):
            row, column = top + down, left + right
            share = (1 - np.abs(rows - row)) * (1 - np.abs(columns - column))
            inside = (row >= 0) & (row < high) & (column >= 0) & (column < wide)
            share = np.where(inside, share, 0).astype(out.dtype)
            place = np.where(inside, row * wide + column, 0).astype(np.intp)
            picked = np.take_along_axis(
                flat, place.reshape(n, groups, 1, math.prod(rows.shape[2:])), axis=3
            )
            out += picked.reshape(out.shape) * share[:, :, None]
    return out
