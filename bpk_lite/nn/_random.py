"""Where initial values come from.

A param draws its stream when it is made and its values when it is first used, so what a seeded
model starts from does not depend on which param happens to be used first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.pack import ParamId

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Stream", "generator", "manual_seed", "next_stream"]

Stream = tuple[int, int]


class _Root:
    """The seed in force, and how many streams it has given out."""

    seed: int | None = None
    given: int = 0


def manual_seed(seed: int) -> None:
    """Make the initial values of every module built from here on reproducible.

    Args:
        seed: any integer from 0; the same seed and the same construction give the same values.

    Raises:
        ValueError: If `seed` is negative.
    """
    if seed < 0:
        raise ValueError(f"a seed is an integer from 0, not {seed}")
    _Root.seed, _Root.given = seed, 0


def next_stream() -> Stream:
    """Return a stream that no other param has."""
    if _Root.seed is None:
        _Root.seed = int(ParamId.random())
    _Root.given += 1
    return _Root.seed, _Root.given


def generator(stream: Stream) -> Generator:
    """Return the generator at the beginning of `stream`."""
    random: Any = np.random  # numpy imports it on first access; most models never need it
    made: Generator = random.default_rng(stream)
    return made
