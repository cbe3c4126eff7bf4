"""Elements of four and eight bytes, in one pass and little memory.

Extremes and zeros are exact. Mean and deviation are merged from blocks (Chan, Golub and LeVeque)
around the first value, in float64, so that neither billions of elements nor a huge offset cost
digits. For the distribution the upper 16 bits of the values as float32 are counted, cells less than
0.8 % wide, and a thin sample is kept.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bpk_lite.inspect._distribution import Distribution
from bpk_lite.inspect._tally import Totals

__all__ = ["Numbers"]

_SAMPLE = 3 << 15  # elements kept at most; a third of them after each thinning
_DISTINCT = 1 << 16  # different whole numbers kept at most
_CLOSE = 1 << 17  # whole numbers this near to each other are told apart by counting
_HUGE = 2.0**500  # squares of larger ones would overflow
_SCALE = -600
_LARGEST = float(np.finfo(np.float64).max)


class Numbers:
    """Numbers of four and eight bytes: floats, or whole numbers up to 64 bits."""

    __slots__ = (
        "_cells",
        "_distinct",
        "_exponent",
        "_kept",
        "_least",
        "_m2",
        "_mean",
        "_merged",
        "_most",
        "_nans",
        "_negative",
        "_pivot",
        "_positive",
        "_sample",
        "_seen",
        "_step",
        "_whole",
        "_zeros",
        "stored",
    )

    def __init__(self, stored: np.dtype[Any]) -> None:
        self.stored = stored
        self._whole = stored.kind in "iu"
        self._seen = self._zeros = self._nans = self._positive = self._negative = 0
        self._least: float | None = None
        self._most: float | None = None
        # moments of (value - pivot), times 2^exponent
        self._pivot: float = 0
        self._merged = self._exponent = 0
        self._mean = self._m2 = 0.0
        self._cells: np.ndarray[Any, Any] | None = None
        self._sample: list[np.ndarray[Any, Any]] = []
        self._kept, self._step = 0, 1
        self._distinct = np.zeros(0, stored) if self._whole else None

    def add(self, block: np.ndarray[Any, Any]) -> None:
        if not block.size:
            return
        with np.errstate(all="ignore"):
            in_sample = self._keep_sample(block)
            least, most = block.min(), block.max()
            if not (np.isfinite(least) and np.isfinite(most)):  # a NaN makes both NaN
                block = self._finite(block)
                if not block.size:
                    return
                least, most = block.min(), block.max()
            low, high = least.item(), most.item()
            self._least = low if self._least is None else min(self._least, low)
            self._most = high if self._most is None else max(self._most, high)
            self._merge_moments(block, low, high)
            if in_sample or self._count_cells(block):
                self._zeros += block.size - int(np.count_nonzero(block))
            if self._distinct is not None:
                self._tell_apart(block, low, high)

    def _count_cells(self, values: np.ndarray[Any, Any]) -> bool:
        """Count finite values by cells; return whether there may be zeros among them."""
        assert self._cells is not None
        narrow = values.astype("<f4", copy=False)
        found = np.bincount(narrow.view("<u2")[1::2], minlength=1 << 16)
        self._cells += found
        return bool(found[0] or found[1 << 15])

    def _finite(self, block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self._nans += int(np.count_nonzero(np.isnan(block)))
        self._positive += int(np.count_nonzero(block == np.inf))
        self._negative += int(np.count_nonzero(block == -np.inf))
        found: np.ndarray[Any, Any] = block[np.isfinite(block)]
        return found

    def _keep_sample(self, block: np.ndarray[Any, Any]) -> bool:
        """Keep every step-th element of all. Steps are powers of three: shapes are seldom.

        Returns:
            Whether every element so far is or was in the sample. The cells are counted from it when
            it is thinned for the first time, so that small tensors cost little.
        """
        all_so_far = self._cells is None
        taken = block[-self._seen % self._step :: self._step].astype(np.float64)
        self._seen += block.size
        if taken.size:
            self._sample.append(taken)
            self._kept += taken.size
        while self._kept > _SAMPLE:
            whole = np.concatenate(self._sample)
            if self._cells is None:  # until now the sample was all there is
                self._cells = np.zeros(1 << 16, np.int64)
                self._count_cells(whole[np.isfinite(whole)])
            thinned = whole[::3]
            self._sample, self._kept = [thinned], thinned.size
            self._step *= 3
        return all_so_far

    def _merge_moments(self, block: np.ndarray[Any, Any], low: float, high: float) -> None:
        if not self._merged:
            self._pivot = block[0].item()
        if max(abs(low), abs(high)) > _HUGE and not self._exponent:
            self._exponent = _SCALE
            self._mean = math.ldexp(self._mean, _SCALE)
            self._m2 = math.ldexp(self._m2, 2 * _SCALE)
        offset = 0.0
        if self._whole and self.stored.itemsize == 8:
            # float64 does not hold these: exact differences first, modulo 2^64
            distance = block.view("<u8") - np.uint64(int(low) % (1 << 64))
            values = distance.astype(np.float64)
            offset = float(int(low) - int(self._pivot))
        elif self._exponent:
            values = np.ldexp(block, self._exponent)
            values -= math.ldexp(self._pivot, self._exponent)
        else:
            values = block.astype(np.float64)
            values -= self._pivot
        mean = float(values.sum()) / values.size
        m2 = float(values @ values) - values.size * mean * mean
        if not m2 > values.size * mean * mean:  # digits may have been lost: around the mean itself
            values -= mean
            m2 = float(values @ values)
        merged = self._merged + values.size
        delta = mean + offset - self._mean
        self._mean += delta * (values.size / merged)
        self._m2 += m2 + delta * delta * (self._merged * (values.size / merged))
        self._merged = merged

    def _tell_apart(self, block: np.ndarray[Any, Any], low: float, high: float) -> None:
        """Note which whole numbers there are, until they are too many."""
        assert self._distinct is not None
        if self._distinct.size > _DISTINCT:
            return
        if high - low < _CLOSE:
            distance = (block - np.array(low, block.dtype)).astype(np.intp)
            found = np.flatnonzero(np.bincount(distance)).astype(block.dtype)
            found += np.array(low, block.dtype)
        else:
            found = np.unique(block)
        self._distinct = np.union1d(self._distinct, found)

    def totals(self) -> Totals:
        mean = std = None
        if self._merged:
            mean = _scaled(math.ldexp(self._pivot, self._exponent) + self._mean, -self._exponent)
            std = _scaled(math.sqrt(self._m2 / self._merged), -self._exponent)
        distinct = None if self._distinct is None else self._distinct.size
        return Totals(
            count=self._seen,
            nans=self._nans,
            infs_positive=self._positive,
            infs_negative=self._negative,
            zeros=self._zeros,
            least=self._least,
            most=self._most,
            mean=mean,
            std=std,
            distinct=distinct,
            distinct_is_exact=distinct is not None and distinct <= _DISTINCT,
            distribution=self._distribution(),
        )

    def _distribution(self) -> Distribution:
        sample = np.concatenate(self._sample) if self._sample else np.zeros(0)
        sample = sample[np.isfinite(sample)]
        if self._cells is None:
            return Distribution.of(sample)
        counts = self._cells.copy()
        counts[0] += counts[1 << 15]  # the zeros of both signs
        counts[1 << 15] = 0
        low, high = _cells()
        order = np.argsort(low, kind="stable")
        order = order[counts[order] > 0]
        low, high = low[order], high[order]
        if order.size:
            assert self._least is not None
            assert self._most is not None
            low[0], high[-1] = self._least, math.nextafter(self._most, math.inf)
        return Distribution(low, high, counts[order], sample)


def _scaled(value: float, exponent: int) -> float:
    """Return a mean or a deviation of float64 numbers, which cannot exceed them but by rounding."""
    with np.errstate(over="ignore"):
        return float(np.clip(np.ldexp(value, exponent), -_LARGEST, _LARGEST))


def _cells() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the bounds of the values whose float32 has the upper 16 bits 0, 1, 2, …, as float64.

    Infinite ones stand for what float32 cannot hold; NaNs never occur.
    """
    codes = np.arange(0x7F80, dtype="<u4") << np.uint32(16)
    bound = np.full(1 << 15, 2.0**128)
    bound[:0x7F80] = codes.view("<f4")
    upper = np.append(bound[1:], _LARGEST)
    upper[0x7F80] = _LARGEST
    low = np.concatenate([bound, -np.nextafter(upper, 0)])
    high = np.concatenate([upper, np.nextafter(-bound, np.inf)])
    low[0], high[0] = low[1 << 15], upper[0]
    return low, high
