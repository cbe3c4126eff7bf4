"""Elements of one and two bytes: every code is counted, and all else follows from that, exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bpk_lite.inspect._distribution import Distribution
from bpk_lite.inspect._tally import Totals

__all__ = ["Codes"]


class Codes:
    """Counts of every code of one or two bytes.

    Args:
        values: the value of each code, as an array of integers or float64.
    """

    __slots__ = ("_counts", "_values", "stored")

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.stored = np.dtype("<u2" if values.size > 256 else "|u1")
        self._values = values
        self._counts = np.zeros(values.size, np.int64)

    def add(self, block: np.ndarray[Any, Any]) -> None:
        self._counts += np.bincount(block, minlength=self._counts.size)

    def totals(self) -> Totals:
        held = np.flatnonzero(self._counts)
        held = held[np.argsort(self._values[held], kind="stable")]
        values, counts = self._values[held], self._counts[held]
        whole = values.dtype.kind in "iu"
        wanted = np.isfinite(values)
        finite, times = values[wanted].astype(np.float64), counts[wanted]
        total = int(times.sum())
        mean = std = None
        if total:
            pivot = float(finite[np.argmax(times)])  # makes constants exact
            shifted = finite - pivot
            offset = float(shifted @ times) / total
            mean = pivot + offset
            std = math.sqrt(float(((shifted - offset) ** 2) @ times) / total)
        return Totals(
            count=int(counts.sum()),
            nans=int(counts[np.isnan(values)].sum()),
            infs_positive=int(counts[values == np.inf].sum()),
            infs_negative=int(counts[values == -np.inf].sum()),
            zeros=int(counts[values == 0].sum()),
            least=values[wanted][0].item() if total else None,
            most=values[wanted][-1].item() if total else None,
            mean=mean,
            std=std,
            distinct=finite.size if whole else None,
            distinct_is_exact=whole,
            distribution=Distribution(finite, finite, times),
        )
