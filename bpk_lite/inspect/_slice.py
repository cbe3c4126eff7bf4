"""A two-dimensional picture of a tensor: two of its axes, at an index of the others, small enough.

A matrix may be larger than memory, so it is read by windows and added up block by block. Sums of
rows first and of columns then, by a product with ones, is the fastest way that numpy knows.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bpk_lite.pack import BpkError, DType, LimitError
from bpk_lite.pack._dtype import float32_from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bpk_lite.pack import Progress, Tensor

__all__ = ["Slice", "SliceError", "tensor_slice"]

_LARGEST_SIZE = 8192
_WINDOW = 1 << 20  # elements read at once
_SAMPLED = 1 << 14  # values whose percentiles are taken
# Reading rows together, with what lies between them, beats a read for each up to this factor.
_SPARSE = 4
_LARGEST_QUANTIZED = 1 << 26  # elements; they are made whole

Method = Literal["mean", "nearest"]


class SliceError(BpkError, IndexError):
    """An axis or a position that the tensor does not have; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Two axes of a tensor as a picture.

    Attributes:
        values: float32 ``[rows, columns]``, both at most the size that was asked for. Numbers
            beyond float32 are infinite.
        shape: true extent of the two axes.
        axes: which axes they are, 0 for the outermost; None where the tensor has none.
        index: position on every other axis.
        block: elements that one value stands for, down and across; fewer at the far borders.
        method: ``"all"`` when every element is shown, ``"mean"`` when a value is the mean of its
            block (NaN if one of them is), ``"nearest"`` when it is the element amid it.
        low: the first percentile of the finite values shown, from a sample; None if none is finite.
        high: the 99th.
    """

    values: np.ndarray[Any, np.dtype[np.float32]]
    shape: tuple[int, int]
    axes: tuple[int | None, int | None]
    index: Mapping[int, int]
    block: tuple[int, int]
    method: Literal["all", "mean", "nearest"]
    low: float | None
    high: float | None


def tensor_slice(
    tensor: Tensor,
    axes: Sequence[int] | None = None,
    index: Mapping[int, int] | None = None,
    *,
    max_size: int = 512,
    method: Method = "mean",
    progress: Progress | None = None,
) -> Slice:
    """Return two axes of a tensor as a picture of at most ``max_size * max_size`` values.

    Reads what the picture needs, by windows of at most 1 Mi elements, and holds one at a time.
    Tensors of one dimension or none are shown as one row. Booleans are what is stored, 0 and 1.

    Args:
        tensor: any tensor. One that a provider makes is made whole, and so is a quantized one.
        axes: rows and columns; the last two by default. Negative ones count from the last.
        index: position on the other axes, 0 where it is not given; negative ones from the end.
        max_size: values in each direction at most, 1 to 8192.
        method: how larger ones become small: ``"mean"`` reads all of the two axes, ``"nearest"``
            one row for each row of the picture.
        progress: called as ``progress(name, done_rows, total_rows)`` after each window. What it
            raises ends the work and comes out here.

    Raises:
        SliceError: an axis or a position that the tensor does not have, or equal axes.
        ValueError: `max_size` or `method` is none of these.
        ValidationError: a quantized tensor whose values cannot be told (C128).
        LimitError: a quantized tensor of more than 64 Mi elements.
        ReadError, TruncatedError, TensorClosedError, ProviderError: from the tensor.
    """
    if not 1 <= max_size <= _LARGEST_SIZE:
        raise ValueError(f"max_size is 1 to {_LARGEST_SIZE}, not {max_size}")
    if method not in ("mean", "nearest"):
        raise ValueError(f"method is mean or nearest, not {method!r}")
    plane = _plane(tensor.shape, axes, index)
    height, width = plane.shape
    block = (max(1, -(-height // max_size)), max(1, -(-width // max_size)))
    how: Literal["all", "mean", "nearest"] = "all" if block == (1, 1) else method
    if 0 in tensor.shape:
        values = np.zeros((0, 0), np.float32)
    else:
        values = _reduced(_Elements(tensor), plane, block, how, progress)
    low, high = _percentiles(values)
    return Slice(values, plane.shape, plane.axes, plane.index, block, how, low, high)


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where the elements of two axes lie: ``start + row * down + column * across``."""

    axes: tuple[int | None, int | None]
    index: dict[int, int]
    shape: tuple[int, int]
    start: int
    down: int
    across: int

    def turned(self) -> _Plane:
        """Return the plane with rows and columns exchanged."""
        (row, column), (height, width) = self.axes, self.shape
        return _Plane(
            (column, row), self.index, (width, height), self.start, self.across, self.down
        )


def _plane(
    shape: tuple[int, ...], axes: Sequence[int] | None, index: Mapping[int, int] | None
) -> _Plane:
    rank = len(shape)
    if axes is None:
        axes = (-2, -1)[-rank:] if rank else ()
    if len(axes) != min(rank, 2):
        raise SliceError(
            f"a tensor of {rank} dimensions is shown by {min(rank, 2)} axes, not {axes}"
        )
    chosen = [_within(axis, rank, "axis") for axis in axes]
    if len(set(chosen)) < len(chosen):
        raise SliceError(f"rows and columns are both axis {chosen[0]}")
    given = {_within(axis, rank, "axis"): at for axis, at in (index or {}).items()}
    clash = sorted(given.keys() & set(chosen))
    if clash:
        raise SliceError(f"axis {clash[0]} is shown, so it has no index")
    positions = {
        axis: _within(given.get(axis, 0), dim, f"axis {axis}: index")
        for axis, dim in enumerate(shape)
        if axis not in chosen and (dim or axis in given)
    }
    strides = [math.prod(shape[axis + 1 :]) for axis in range(rank)]
    start = sum(strides[axis] * at for axis, at in positions.items())
    if not chosen:
        return _Plane((None, None), positions, (1, 1), start, 0, 0)
    column = chosen[-1]
    if len(chosen) == 1:
        return _Plane((None, column), positions, (1, shape[column]), start, 0, strides[column])
    row = chosen[0]
    extents = (shape[row], shape[column])
    return _Plane((row, column), positions, extents, start, strides[row], strides[column])


def _within(value: int, limit: int, what: str) -> int:
    found = operator.index(value)
    if not -limit <= found < limit:
        raise SliceError(f"{what} {found} is out of range: there are {limit}")
    return found % limit


def _reduced(
    elements: _Elements,
    plane: _Plane,
    block: tuple[int, int],
    how: str,
    progress: Progress | None,
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the picture. The axis that is the outer one in memory makes rows until the end."""
    turned = plane.down < plane.across and plane.axes[0] is not None
    if turned:
        plane, block = plane.turned(), (block[1], block[0])
    picks = tuple(
        np.minimum(np.arange(0, extent, step) + step // 2, extent - 1)
        for extent, step in zip(plane.shape, block, strict=True)
    )
    apart = how == "nearest" and block[0] > _SPARSE
    rows = picks[0].tolist() if apart else None
    sums = np.zeros((picks[0].size, picks[1].size))
    done = 0
    with np.errstate(all="ignore"):
        for row, column, part in _windows(elements, plane, block, rows):
            if how == "mean":
                found = _block_sums(_block_sums(part, block[0]).T, block[1]).T
                top, left = row // block[0], column // block[1]
                sums[top : top + found.shape[0], left : left + found.shape[1]] += found
            else:
                down, across = (
                    np.flatnonzero((at <= pick) & (pick < at + extent))
                    for at, pick, extent in zip((row, column), picks, part.shape, strict=True)
                )
                sums[np.ix_(down, across)] = part[
                    np.ix_(picks[0][down] - row, picks[1][across] - column)
                ]
            done = row + part.shape[0]
            if progress is not None:
                progress(elements.name, done, plane.shape[0])
        if how == "mean":
            for axis, (extent, step) in enumerate(zip(plane.shape, block, strict=True)):
                each = np.full(sums.shape[axis], step)
                each[-1] = extent - step * (each.size - 1)
                sums /= each[:, None] if axis == 0 else each
        return np.ascontiguousarray(sums.T if turned else sums, np.float32)


def _block_sums(part: np.ndarray[Any, Any], step: int) -> np.ndarray[Any, Any]:
    """Return the sums of every `step` rows, in float64; of fewer at the end."""
    whole = part.shape[0] // step
    blocks = part[: whole * step].reshape(whole, step, part.shape[1])
    sums: np.ndarray[Any, Any] = np.add.reduce(blocks, axis=1, dtype=np.float64)
    if whole * step == part.shape[0]:
        return sums
    return np.vstack([sums, np.add.reduce(part[whole * step :], axis=0, dtype=np.float64)])


def _windows(
    elements: _Elements, plane: _Plane, block: tuple[int, int], rows: Sequence[int] | None
) -> Iterator[tuple[int, int, np.ndarray[Any, Any]]]:
    """Yield all of the plane, or some rows, as (first row, first column, elements)."""
    height, width = plane.shape
    span = (width - 1) * plane.across + 1
    if span <= _WINDOW and plane.down <= _SPARSE * span:
        for top, bottom in _steps(height, _WINDOW // max(1, plane.down), block[0], rows):
            start = plane.start + top * plane.down
            yield top, 0, elements.read(start, bottom - top, plane.down, width, plane.across)
        return
    for top, bottom in _steps(height, 1, block[0], rows):
        for left, right in _steps(width, _WINDOW // plane.across, block[1], None):
            start = plane.start + top * plane.down + left * plane.across
            yield top, left, elements.read(start, bottom - top, 0, right - left, plane.across)


def _steps(
    total: int, most: int, block: int, only: Sequence[int] | None
) -> Iterator[tuple[int, int]]:
    """Yield ranges that cover `total`, each of whole blocks or inside one."""
    if only is not None:
        yield from ((at, at + 1) for at in only)
        return
    most = max(1, most)
    step = most - most % block if most >= block else block
    for start in range(0, total, step):
        stop = min(total, start + step)
        for at in range(start, stop, most):
            yield at, min(stop, at + most)


class _Elements:
    """Elements by their position in row-major order, read from the tensor or from its values."""

    __slots__ = ("_stored", "_tensor", "_values", "name")

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self.name = tensor.name
        self._stored = tensor.dtype.stored
        self._values: np.ndarray[Any, Any] | None = None
        if tensor.dtype.kind == "quantized":
            if tensor.size > _LARGEST_QUANTIZED:
                raise LimitError(
                    f"quantized tensor {tensor.name!r} has {tensor.size} elements; "
                    f"pictures are made of up to {_LARGEST_QUANTIZED}"
                )
            self._values = tensor.numpy().reshape(-1)
        elif tensor.is_deferred:
            self._values = np.frombuffer(tensor.buffer(), self._stored)

    def read(
        self, start: int, rows: int, down: int, columns: int, across: int
    ) -> np.ndarray[Any, Any]:
        """Return rows and columns of elements that lie `down` and `across` apart."""
        stop = start + (rows - 1) * down + (columns - 1) * across + 1
        if self._values is None:
            size = self._stored.itemsize
            run = np.frombuffer(
                self._tensor.read(start * size, (stop - start) * size), self._stored
            )
        else:
            run = self._values[start:stop]
        found: np.ndarray[Any, Any] = np.lib.stride_tricks.as_strided(
            run,
            (rows, columns),
            (down * run.itemsize, across * run.itemsize),
            writeable=False,
        )
        return float32_from_bfloat16(found) if self._tensor.dtype == DType.BF16 else found


def _percentiles(values: np.ndarray[Any, Any]) -> tuple[float | None, float | None]:
    for sample in (values.reshape(-1)[:: values.size // _SAMPLED + 1], values.reshape(-1)):
        finite = sample[np.isfinite(sample)]
        if finite.size:
            low, high = np.percentile(finite, (1, 99))
            return float(low), float(high)
    return None, None
