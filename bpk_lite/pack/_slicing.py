"""Split an index into the run of elements to read and what is left to do with them.

numpy's basic indexing of a row-major array touches a contiguous run that the leading integers and
the first slice decide. `split` finds that run; the rest of the index is applied to the array made
of it. Arrays and masks, whose presence changes what an integer beside them means, are left to
numpy on the whole tensor, so the answer is always numpy's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

__all__ = ["Part", "split"]

_INTEGER = (int, np.integer)
_BASIC = (*_INTEGER, slice, EllipsisType, type(None))


@dataclass(frozen=True, slots=True)
class Part:
    """Elements `start` to `stop` in row-major order, as an array of `shape`, indexed by `key`."""

    start: int
    stop: int
    shape: tuple[int, ...]
    key: Any


def split(key: Any, shape: tuple[int, ...]) -> Part:
    """Return the part of a tensor of `shape` that ``tensor[key]`` needs.

    Raises:
        IndexError: an integer out of range.
    """
    keys = key if isinstance(key, tuple) else (key,)
    start, stop, axis = 0, math.prod(shape), 0
    if not all(isinstance(item, _BASIC) and not isinstance(item, bool) for item in keys):
        return Part(start, stop, shape, key)
    for dim, item in zip(shape, keys, strict=False):
        rest = shape[axis + 1 :]
        row = math.prod(rest)
        if isinstance(item, slice):
            picked = range(dim)[item]
            low = min(picked[0], picked[-1]) if picked else 0
            high = max(picked[0], picked[-1]) + 1 if picked else 0
            local = slice(None, None, item.step)
            return Part(
                start + low * row,
                start + high * row,
                (high - low, *rest),
                (local, *keys[axis + 1 :]),
            )
        if not isinstance(item, _INTEGER):
            break
        if not -dim <= item < dim:
            raise IndexError(f"index {item} is out of bounds for axis {axis} with size {dim}")
        start += int(item) % dim * row
        stop = start + row
        axis += 1
    return Part(start, stop, shape[axis:], keys[axis:])
