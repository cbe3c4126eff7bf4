"""Where the values of a tensor lie: how many are below a number, quantiles, a histogram to look at.

Wanted: quantiles and a histogram after one pass over gigabytes, with a range that outliers do not
stretch, although nobody knows the range before the pass is over. So the pass counts values by fixed
cells, whose bounds lie less than 0.8 % apart, and keeps a thin sample of them; both together take
under 2 MiB. Afterwards the range is chosen and the cells are poured into its bins. A cell that two
bins share is split as the sample says. Where each cell is a single value nothing is estimated.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Distribution", "Histogram"]

# How far beyond the first and last percentile the picture goes, in parts of their distance: for a
# bell curve one value in 300 000 lies outside.
_MARGIN = 0.5
_EXACT = 2.0**52  # below it halves of whole numbers are exact
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of finite values in bins of equal width.

    Attributes:
        edges: bounds of the bins, one more than `counts`. A bin holds its lower bound and not its
            upper one; the last holds both.
        counts: elements in each bin.
        below: finite elements below the first edge.
        above: finite elements above the last edge. All counts add up to the finite elements.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    below: int
    above: int


class Distribution:
    """Values by cells: counts of what lies in ``[low, high)``, or is `low` where both are equal.

    Args:
        low: lower bounds, ascending, float64.
        high: upper bounds.
        counts: elements in each cell.
        sample: some of the values, evenly taken; empty where the cells are single values.
    """

    __slots__ = ("_cumulated", "_high", "_low", "_sample", "_single", "total")

    def __init__(
        self,
        low: np.ndarray[Any, Any],
        high: np.ndarray[Any, Any],
        counts: np.ndarray[Any, Any],
        sample: np.ndarray[Any, Any] | None = None,
    ) -> None:
        held = counts > 0
        self._low, self._high = low[held], high[held]
        self._cumulated = np.concatenate([[0], np.cumsum(counts[held], dtype=np.int64)])
        self._single = bool((self._low == self._high).all())
        self._sample = np.sort(np.zeros(0) if sample is None else sample)
        self.total = int(self._cumulated[-1])

    @classmethod
    def of(cls, values: np.ndarray[Any, Any]) -> Distribution:
        """Return the distribution of `values` themselves: exact."""
        distinct, counts = np.unique(values, return_counts=True)
        return cls(distinct, distinct, counts)

    def below(self, value: float) -> int:
        """Return how many elements are less than `value`."""
        cell = int(np.searchsorted(self._low, value, "right")) - 1
        if cell < 0:
            return 0
        before, until = (int(n) for n in self._cumulated[cell : cell + 2])
        low, high = float(self._low[cell]), float(self._high[cell])
        if value <= low:
            return before
        if value >= high:
            return until
        inside = self._sampled(cell)
        if inside.size:
            part = float(np.searchsorted(inside, value, "left")) / inside.size
        else:
            part = (value - low) / (high - low)
        return before + round(part * (until - before))

    def all_below(self, values: Sequence[float]) -> list[int]:
        """Return `below` of each of `values`."""
        if self._single:
            return list(self._cumulated[np.searchsorted(self._low, values, "left")].tolist())
        return [self.below(value) for value in values]

    def quantile(self, probability: float) -> float:
        """Return the least value that at least this part of the elements do not exceed."""
        rank = max(1, math.ceil(probability * self.total))
        cell = int(np.searchsorted(self._cumulated, rank, "left")) - 1
        before, until = (int(n) for n in self._cumulated[cell : cell + 2])
        low, high = float(self._low[cell]), float(self._high[cell])
        if low == high:
            return low
        part = (rank - before) / (until - before)
        inside = self._sampled(cell)
        if inside.size:
            return float(inside[min(inside.size - 1, int(part * inside.size))])
        return low + part * (high - low)

    def _sampled(self, cell: int) -> np.ndarray[Any, Any]:
        start, stop = np.searchsorted(self._sample, [self._low[cell], self._high[cell]])
        return self._sample[start:stop]

    def without_cell_of(self, value: float) -> Distribution:
        """Return the distribution of the elements that are not in the cell of `value`."""
        counts = np.diff(self._cumulated)
        counts[int(np.searchsorted(self._low, value, "right")) - 1] = 0
        return Distribution(self._low, self._high, counts, self._sample)

    def histogram(self, bins: int, least: float, most: float, *, whole: bool) -> Histogram:
        """Return the histogram over a range that outliers do not stretch.

        Args:
            bins: how many; whole numbers may need fewer.
            least: the smallest finite value.
            most: the largest.
            whole: the values are whole numbers, so bins are as well.
        """
        edges = _edges(*self._range(least, most), bins, whole)
        bounds = [*edges[:-1], math.nextafter(edges[-1], math.inf)]
        counts = self.all_below(bounds)
        return Histogram(
            tuple(edges),
            tuple(after - before for before, after in itertools.pairwise(counts)),
            counts[0],
            self.total - counts[-1],
        )

    def _range(self, least: float, most: float) -> tuple[float, float]:
        first, last = self.quantile(0.01), self.quantile(0.99)
        if first == last:  # nearly all are one number: the others decide, and it must be seen too
            others = self.without_cell_of(first)
            if not others.total:
                return least, most
            first = min(first, others.quantile(0.01))
            last = max(last, others.quantile(0.99))
        margin = _MARGIN * last - _MARGIN * first
        return max(least, first - margin), min(most, last + margin)


def _edges(low: float, high: float, bins: int, whole: bool) -> Sequence[float]:
    """Return ascending edges that hold `low` and `high`, all different."""
    if whole and max(abs(low), abs(high)) < _EXACT:
        first, last = math.ceil(low), math.floor(high)
        width = max(1, -(-(last - first + 1) // bins))
        count = -(-(last - first + 1) // width)
        return [first - 0.5 + width * i for i in range(count + 1)]
    needed = 8 * bins * math.ulp(max(abs(low), abs(high)))
    if high - low < needed:
        low, high = max(-_LARGEST, low - max(0.5, needed)), min(_LARGEST, high + max(0.5, needed))
    # both ends weighted, since the distance of two finite numbers need not be finite
    return [low * (1 - i / bins) + high * (i / bins) for i in range(bins + 1)]
