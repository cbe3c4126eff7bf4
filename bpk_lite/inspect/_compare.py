"""Two tensors of one shape, element by element, window by window.

Windows whose bytes agree cost a comparison and a product; the others are taken apart in blocks that
stay in the cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.pack import DType
from bpk_lite.pack._dtype import float32_from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bpk_lite.pack import Tensor

__all__ = ["Comparison", "compare"]

_BLOCK = 1 << 14  # elements: a dozen arrays of them stay in the cache
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_LARGEST_QUANTIZED = 1 << 26  # elements; they are made whole


@dataclass(slots=True)
class Comparison:
    """How the elements of two tensors differ; see `DiffRow`."""

    identical: bool = True
    differing: int = 0
    nonfinite: int = 0
    max_abs: float | None = None
    max_rel: float | None = None
    note: str = ""
    _products: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    @property
    def cosine(self) -> float | None:
        """Cosine similarity of what is finite in both; None if that is all zeros or too large."""
        squares, other_squares, mixed = self._products
        scale = math.sqrt(squares) * math.sqrt(other_squares)
        if not 0 < scale < math.inf or not math.isfinite(mixed):
            return None
        return max(-1.0, min(1.0, mixed / scale))

    def _largest(self, absolute: float, relative: float) -> None:
        self.max_abs = absolute if self.max_abs is None else max(self.max_abs, absolute)
        self.max_rel = relative if self.max_rel is None else max(self.max_rel, relative)

    def _add(self, old: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> None:
        """Compare a block of elements as stored, of two dtypes perhaps."""
        exact = old.dtype == new.dtype and old.dtype.kind in "iu"
        one, other = (block.astype(np.float64) for block in (old, new))
        if exact:  # modulo 2^64, which the unsigned view undoes
            gap = np.where(old > new, old - new, new - old).view(f"<u{old.itemsize}").astype("<f8")
        else:
            gap = np.abs(one - other)
            if not math.isfinite(float(gap.sum())):
                one, other, gap = self._without_nonfinite(one, other, gap)
        if not gap.size:
            return
        self.differing += int(np.count_nonzero(gap))
        larger = np.maximum(np.abs(one), np.abs(other))
        np.maximum(larger, _TINY, out=larger)  # 0 / 0 is no difference
        self._largest(float(gap.max()), float((gap / larger).max()))
        for i, (x, y) in enumerate(((one, one), (other, other), (one, other))):
            self._products[i] += float(x @ y)

    def _without_nonfinite(
        self, one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], gap: np.ndarray[Any, Any]
    ) -> tuple[np.ndarray[Any, Any], ...]:
        """Count what is NaN or infinite in one of them, and return the rest."""
        finite = np.isfinite(one) & np.isfinite(other)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        odd = int(np.count_nonzero(~same & ~finite))
        self.nonfinite += odd
        self.differing += odd
        return one[finite], other[finite], gap[finite]

    def _add_equal(self, block: np.ndarray[Any, Any]) -> None:
        values = block.astype(np.float64)
        square = float(values @ values)
        if not math.isfinite(square):
            values = values[np.isfinite(values)]
            square = float(values @ values)
        if values.size:
            self._largest(0.0, 0.0)
        for i in range(3):
            self._products[i] += square


def compare(old: Tensor, new: Tensor, step: Callable[[int], None]) -> Comparison:
    """Compare two tensors of one shape; `step` is called with the bytes of `old` that are done."""
    found = Comparison()
    if "quantized" in (old.dtype.kind, new.dtype.kind):
        return _compare_quantized(found, old, new, step)
    done = 0
    one_type, other_type = (_stored(tensor.dtype) for tensor in (old, new))
    for one, other in _windows(old, new, one_type.itemsize, other_type.itemsize):
        alike = old.dtype == new.dtype and np.array_equal(
            np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)
        )
        found.identical = found.identical and alike
        with np.errstate(all="ignore"):
            for start in range(0, one.nbytes // one_type.itemsize, _BLOCK):
                x = _block(old.dtype, one, one_type, start)
                if alike:
                    found._add_equal(x)
                else:
                    found._add(x, _block(new.dtype, other, other_type, start))
        done += one.nbytes
        step(done)
    return found


def _stored(dtype: DType) -> np.dtype[Any]:
    return np.dtype("<u2") if dtype == DType.BF16 else dtype.stored


def _block(dtype: DType, view: memoryview, stored: np.dtype[Any], start: int) -> Any:
    size = stored.itemsize
    count = min(_BLOCK, view.nbytes // size - start)
    found = np.frombuffer(view, stored, count, start * size)
    return float32_from_bfloat16(found) if dtype == DType.BF16 else found


def _compare_quantized(
    found: Comparison, old: Tensor, new: Tensor, step: Callable[[int], None]
) -> Comparison:
    """Compare bytes, and values where they can be told and are not too many."""
    found.identical = (
        old.dtype == new.dtype
        and old.nbytes == new.nbytes
        and all(one == other for one, other in _windows(old, new, 1, 1))
    )
    if old.size > _LARGEST_QUANTIZED:
        found.note = "values not compared: too many quantized elements"
    for tensor in (old, new):
        scheme = tensor.dtype.scheme
        reason = None if scheme is None else scheme.opaque_reason(tensor.shape, tensor.nbytes)
        if reason is not None:
            found.note = f"values not compared: {reason}"
    if not found.note:
        one, other = (_values(tensor) for tensor in (old, new))
        with np.errstate(all="ignore"):
            for start in range(0, one.size, _BLOCK):
                found._add(one[start : start + _BLOCK], other[start : start + _BLOCK])
    step(old.nbytes)
    return found


def _values(tensor: Tensor) -> np.ndarray[Any, Any]:
    if tensor.dtype.scheme is not None:
        return tensor.numpy().reshape(-1)
    values: np.ndarray[Any, Any] = _block_all(tensor)
    return values


def _block_all(tensor: Tensor) -> Any:
    found = np.frombuffer(tensor.buffer(), _stored(tensor.dtype))
    return float32_from_bfloat16(found) if tensor.dtype == DType.BF16 else found


def _windows(
    old: Tensor, new: Tensor, size: int, other_size: int
) -> Iterator[tuple[memoryview, memoryview]]:
    """Yield views of the same elements of both, from pieces that may end anywhere."""
    waiting, other_waiting = memoryview(b""), memoryview(b"")
    pieces, others = old.pieces(), new.pieces()
    while True:
        waiting = _filled(waiting, pieces, size)
        other_waiting = _filled(other_waiting, others, other_size)
        count = min(waiting.nbytes // size, other_waiting.nbytes // other_size)
        if not count:
            for rest in (pieces, others):  # lets a provider that gives too much be noticed
                next(rest, None)
            return
        yield waiting[: count * size], other_waiting[: count * other_size]
        waiting, other_waiting = waiting[count * size :], other_waiting[count * other_size :]


def _filled(waiting: memoryview, pieces: Iterator[memoryview], size: int) -> memoryview:
    """Return bytes of at least one element, if there are more."""
    while waiting.nbytes < size:
        rest = bytes(waiting)  # a piece is valid only until the next one
        piece = next(pieces, None)
        if piece is None:
            return memoryview(rest)
        waiting = memoryview(rest + bytes(piece)) if rest else piece
    return waiting
