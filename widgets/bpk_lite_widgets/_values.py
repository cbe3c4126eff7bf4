"""A few elements of a tensor, as text: what the table of values shows, and no more is read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bpk_lite.pack import DType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpk_lite.pack import Tensor

__all__ = ["values_text"]

_NEAR: Final = 1 << 12  # bytes between two elements up to which they are read together
_RUN: Final = 1 << 18  # bytes that are read together at most


def values_text(
    tensor: Tensor,
    axes: Sequence[int] | None,
    index: Mapping[int, int],
    corner: tuple[int, int],
    size: tuple[int, int],
) -> list[list[str]]:
    """Return the elements of a rectangle in two axes, row by row, each as text.

    Args:
        tensor: not quantized.
        axes: rows and columns; None for a tensor of one dimension or none, which is one row.
        index: where the other axes stand; 0 where it is not given.
        corner: first row and column.
        size: rows and columns; cut where the tensor ends.

    Raises:
        IndexError: an axis or a place that the tensor does not have.
        ReadError, TruncatedError, TensorClosedError, ProviderError: from the tensor.
    """
    shape = tensor.shape
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    start = 0
    for axis, dim in enumerate(shape):
        at = index.get(axis, 0)
        if not 0 <= at < dim:
            raise IndexError(f"index {at} of axis {axis} is out of range: there are {dim}")
        start += at * strides[axis]
    if axes is None:
        height, down = 1, 0
        width, across = (shape[0], 1) if shape else (1, 0)
    else:
        row, column = axes
        height, down, width, across = shape[row], strides[row], shape[column], strides[column]
    rows = range(corner[0], min(corner[0] + size[0], height))
    columns = range(corner[1], min(corner[1] + size[1], width))
    places = [start + at * down + along * across for at in rows for along in columns]
    texts = iter([_text(value) for value in _elements(tensor, places)])
    return [[next(texts) for _ in columns] for _ in rows]


def _elements(tensor: Tensor, places: list[int]) -> list[Any]:
    """Return single elements, reading near ones together."""
    stored = np.dtype("<u2") if tensor.dtype == DType.BF16 else tensor.dtype.stored
    size = stored.itemsize
    found: dict[int, Any] = {}
    run: list[int] = []

    def read() -> None:
        view = tensor.read(run[0] * size, (run[-1] + 1 - run[0]) * size)
        raw = np.frombuffer(view, stored)[[place - run[0] for place in run]]
        found.update(zip(run, _plain(raw, tensor.dtype), strict=True))

    for place in sorted(set(places)):
        if run and ((place - run[-1]) * size > _NEAR or (place - run[0]) * size > _RUN):
            read()
            run = []
        run.append(place)
    if run:
        read()
    return [found[place] for place in places]


def _plain(raw: np.ndarray[Any, Any], dtype: DType) -> list[Any]:
    if dtype == DType.BF16:
        raw = (raw.astype("<u4") << np.uint32(16)).view("<f4")
    if dtype.kind == "bool":
        return [bool(value) if value <= 1 else int(value) for value in raw]
    if raw.dtype.kind == "f" and raw.itemsize < 8:
        return [_Single(value) for value in raw.tolist()]
    plain: list[Any] = raw.tolist()
    return plain


class _Single(float):
    """A float of which no more digits are known than single precision has."""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return format(value, ".6g" if isinstance(value, _Single) else ".10g")
    return str(value)
