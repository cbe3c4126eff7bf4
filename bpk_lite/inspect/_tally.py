"""Counting the elements of a tensor while they pass by: what a tally takes and what it gives.

Blocks of 64 Ki elements stay in the cache and are what numpy in Pyodide likes best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from bpk_lite.inspect._distribution import Distribution

__all__ = ["BLOCK", "Tally", "Totals"]

BLOCK = 1 << 16
"""Elements that are worked on at once."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What a tally knows; see `TensorStats`."""

    count: int
    nans: int
    infs_positive: int
    infs_negative: int
    zeros: int
    least: float | None  # over finite elements
    most: float | None
    mean: float | None
    std: float | None
    distinct: int | None
    distinct_is_exact: bool
    distribution: Distribution


class Tally(Protocol):
    """Counts elements that come in blocks."""

    stored: np.dtype[Any]

    def add(self, block: np.ndarray[Any, Any]) -> None:
        """Count a block of elements as stored. It is not kept."""
        ...

    def totals(self) -> Totals:
        """Return what is known so far."""
        ...
