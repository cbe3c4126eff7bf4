"""Statistics of a tensor in one pass over its bytes, in little memory, wherever they come from."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.inspect._codes import Codes
from bpk_lite.inspect._numbers import Numbers
from bpk_lite.inspect._tally import BLOCK
from bpk_lite.pack import DType
from bpk_lite.pack._dtype import float32_from_bfloat16

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpk_lite.inspect._distribution import Histogram
    from bpk_lite.inspect._tally import Tally
    from bpk_lite.pack import Progress, Tensor

__all__ = ["Statistics", "TensorStats", "plain", "tensor_stats"]

PROBABILITIES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_MOST_BINS = 4096


@dataclass(frozen=True, slots=True)
class TensorStats:
    """What the elements of a tensor are like.

    Counts, extremes and zeros are exact for every dtype, 64-bit integers included. Mean and
    standard deviation are computed in float64 and good to about 12 digits. Quantiles and the
    histogram are exact for elements of one and two bytes and for up to 98 304 wider ones; beyond
    that a quantile lies within 0.8 % of the right one, usually much nearer, and the bins of the
    histogram, whose sum is exact, share the elements at their borders as a sample says.

    Attributes:
        dtype: the element type, as text.
        count: elements.
        finite: elements that are neither NaN nor infinite.
        nans: NaNs.
        infs_positive: elements that are +inf.
        infs_negative: elements that are -inf.
        zeros: elements that are 0.0 or -0.0.
        min: the least element that is no NaN, infinities included; None if there is none. An int
            for whole numbers and booleans.
        max: the greatest, likewise.
        mean: mean of the finite elements, or None.
        std: their standard deviation (of the population: divided by their number), or None.
        distinct: for whole numbers and booleans how many different ones there are; None for floats.
        distinct_is_exact: False if there are at least `distinct` of them, perhaps more.
        quantiles: from probability to the least finite element that this part does not exceed.
        histogram: counts of finite elements, in a range that outliers do not stretch.
        note: what the numbers describe where that is not plain, or why there are none.
    """

    dtype: str
    count: int = 0
    finite: int = 0
    nans: int = 0
    infs_positive: int = 0
    infs_negative: int = 0
    zeros: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    distinct: int | None = None
    distinct_is_exact: bool = False
    quantiles: Mapping[float, float] = field(default_factory=dict)
    histogram: Histogram | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as strict JSON can hold it: infinities and NaN as text."""
        found: dict[str, Any] = {
            name: plain(getattr(self, name))
            for name in self.__slots__
            if name not in {"quantiles", "histogram"}
        }
        found["quantiles"] = {str(key): plain(value) for key, value in self.quantiles.items()}
        found["histogram"] = self.histogram and {
            "edges": list(self.histogram.edges),
            "counts": list(self.histogram.counts),
            "below": self.histogram.below,
            "above": self.histogram.above,
        }
        return found

    def _repr_html_(self) -> str:
        from bpk_lite.inspect._html import html

        return html(self)


def plain(value: Any) -> Any:
    """Return a number as strict JSON can hold it."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Statistics:
    """Gathers `TensorStats` from the bytes of a tensor as they come.

    It takes under 8 MiB, whatever the tensor has, and does no I/O: feed it from a file, a stream,
    or a page::

        statistics = Statistics(tensor.dtype)
        for piece in tensor.pieces():
            statistics.update(piece)
        statistics.result()

    Args:
        dtype: element type of the tensor.
        bins: how many bins the histogram has at most, 1 to 4096.
        shape: dimensions of the tensor; needed for quantized ones only, whose bytes hold scales
            behind the elements.

    Raises:
        ValueError: `bins` is out of range.
    """

    __slots__ = ("_bins", "_bytes", "_carry", "_dtype", "_shape", "_tally", "_values")

    def __init__(self, dtype: DType, *, bins: int = 64, shape: Sequence[int] | None = None) -> None:
        if not 1 <= bins <= _MOST_BINS:
            raise ValueError(f"bins is 1 to {_MOST_BINS}, not {bins}")
        self._dtype, self._bins = dtype, bins
        self._shape = None if shape is None else tuple(shape)
        self._tally = _tally(dtype)
        self._bytes = 0
        self._carry = b""
        # bytes of the elements; what follows are scales
        self._values: int | None = None
        if dtype.scheme is not None and self._shape is not None:
            layout = dtype.scheme.layout(self._shape)
            self._values = layout[0] if layout is not None else 0

    def update(self, piece: Any) -> None:
        """Take the next bytes: any buffer of any length. It is not kept.

        Pieces may end anywhere, inside an element too.

        Raises:
            TypeError: not a contiguous buffer.
        """
        view = memoryview(piece)
        if view.nbytes == 0:
            return
        view = view.cast("B") if (view.ndim, view.format) != (1, "B") else view
        start, self._bytes = self._bytes, self._bytes + view.nbytes
        if self._values is not None:
            view = view[: max(0, self._values - start)]
        size = self._tally.stored.itemsize
        position = 0
        if self._carry:
            position = size - len(self._carry)
            self._carry += bytes(view[:position])
            if len(self._carry) < size:
                return
            self._tally.add(np.frombuffer(self._carry, self._tally.stored))
        whole = position + (view.nbytes - position) // size * size
        for offset in range(position, whole, BLOCK * size):
            count = min(BLOCK, (whole - offset) // size)
            block = np.frombuffer(view, self._tally.stored, count, offset)
            self._tally.add(block if block.flags.aligned else block.copy())
        self._carry = bytes(view[whole:])

    def result(self) -> TensorStats:
        """Return the statistics of all whole elements so far; more may follow."""
        text, scheme = str(self._dtype), self._dtype.scheme
        note = ""
        if scheme is not None:
            if self._shape is None:
                return TensorStats(text, note="no statistics: they need the tensor's shape")
            reason = scheme.opaque_reason(self._shape, self._bytes)
            if reason is not None:
                return TensorStats(text, note=f"no statistics: {reason}")
            note = f"of the stored {scheme.value} codes; the scales are not applied"
        totals = self._tally.totals()
        if self._dtype.kind == "bool" and (totals.most or 0) > 1:
            note = "booleans that are neither 0 nor 1 count as the numbers they are stored as"
        finite = totals.distribution.total
        least, most = totals.least, totals.most
        histogram = None
        if least is not None and most is not None:
            whole = totals.distinct is not None
            histogram = totals.distribution.histogram(self._bins, least, most, whole=whole)
        return TensorStats(
            text,
            totals.count,
            finite,
            totals.nans,
            totals.infs_positive,
            totals.infs_negative,
            totals.zeros,
            _extreme(least, -math.inf if totals.infs_negative else None, totals.infs_positive),
            _extreme(most, math.inf if totals.infs_positive else None, -totals.infs_negative),
            totals.mean,
            totals.std,
            totals.distinct,
            totals.distinct_is_exact,
            {p: totals.distribution.quantile(p) for p in PROBABILITIES} if finite else {},
            histogram,
            note,
        )


def _extreme(finite: float | None, beyond: float | None, other: int) -> float | None:
    """Return an extreme: infinite if such an element is there, or if no other is."""
    if beyond is not None:
        return beyond
    return math.copysign(math.inf, other) if finite is None and other else finite


def _tally(dtype: DType) -> Tally:
    if dtype.scheme is not None:
        return Codes(dtype.scheme.code_values())
    stored = dtype.stored
    return Numbers(stored) if stored.itemsize > 2 else Codes(_values(dtype))


@functools.cache
def _values(dtype: DType) -> np.ndarray[Any, Any]:
    """Return the value of each code of one or two bytes."""
    stored = dtype.stored
    codes = np.arange(256, dtype="|u1")
    wide = np.arange(1 << 16, dtype="<u2")
    with np.errstate(invalid="ignore"):  # widening a signalling NaN
        if dtype == DType.BF16:
            return float32_from_bfloat16(wide).astype(np.float64)
        values = (codes if stored.itemsize == 1 else wide).view(stored)
        return values.astype(np.float64 if dtype.kind == "float" else np.int64)


def tensor_stats(
    tensor: Tensor,
    *,
    bins: int = 64,
    progress: Progress | None = None,
) -> TensorStats:
    """Return the statistics of a tensor: one pass over its bytes, read by pieces.

    Args:
        tensor: any tensor; a lazy one is read once and not kept.
        bins: how many bins the histogram has at most.
        progress: called as ``progress(name, done_bytes, total_bytes)`` after each piece. What it
            raises ends the pass and comes out here; nothing is left behind.

    Raises:
        ValueError: `bins` is out of range.
        ReadError, TruncatedError, TensorClosedError, ProviderError: from the tensor.
    """
    statistics = Statistics(tensor.dtype, bins=bins, shape=tensor.shape)
    done = 0
    for piece in tensor.pieces():
        statistics.update(piece)
        done += piece.nbytes
        if progress is not None:
            progress(tensor.name, done, tensor.nbytes)
    return statistics.result()
