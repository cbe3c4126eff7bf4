"""A line search for the strong Wolfe conditions (R98): bracket a step, then narrow the bracket.

The step must lower the loss enough (c1) and flatten the slope enough (c2). Trial steps come from
the cubic through two points with their slopes. The safeguards (how far a bracket may grow at once,
when a trial is moved away from an end) are the usual ones, also PyTorch's, since the number of
evaluations shows in the state of the optimizer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Point", "strong_wolfe"]

_C1 = 1e-4
_C2 = 0.9
_GROWTH = 10.0  # a bracket's next end is at most this many times the step
_MARGIN = 0.1  # of the bracket: a trial that comes nearer to an end, twice, is moved off it


@dataclass(frozen=True, slots=True)
class Point:
    """The loss along the direction at one step.

    Attributes:
        step: how far along the direction.
        loss: there.
        slope: of the loss along the direction.
        grad: the whole gradient.
    """

    step: float
    loss: float
    slope: float
    grad: Any


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    step: float,
    *,
    tolerance: float,
    trials: int,
) -> Point:
    """Return a point that meets the conditions, or the best of `trials` evaluations.

    Args:
        evaluate: returns the point at a step.
        start: the point at step 0.
        step: the first trial.
        tolerance: a bracket narrower than this is not narrowed further.
        trials: evaluations beyond the first, at most.
    """
    previous, point, used = start, evaluate(step), 0
    while used < trials:
        if not _lowers(point, start) or (used > 1 and point.loss >= previous.loss):
            break
        if abs(point.slope) <= -_C2 * start.slope:
            return point
        if point.slope >= 0:
            break
        least = point.step + 0.01 * (point.step - previous.step)
        ahead = _cubic(previous, point, least, point.step * _GROWTH)
        previous, point, used = point, evaluate(ahead), used + 1
    else:
        previous = start
    return _zoom(evaluate, start, previous, point, tolerance, trials - used)


def _zoom(
    evaluate: Callable[[float], Point],
    start: Point,
    one: Point,
    other: Point,
    tolerance: float,
    trials: int,
) -> Point:
    """Narrow the bracket between two points; return the end of lower loss."""
    low, high = (one, other) if one.loss <= other.loss else (other, one)
    stuck = False
    for _ in range(trials):
        least, most = sorted((low.step, high.step))
        if (most - least) < tolerance:
            break
        # the cubic through the ends in order of their steps
        ends = (low, high) if low.step < high.step else (high, low)
        step = _cubic(*ends, least, most)
        margin = _MARGIN * (most - least)
        if min(most - step, step - least) < margin:
            if stuck or step >= most or step <= least:
                nearer_most = abs(step - most) < abs(step - least)
                step = most - margin if nearer_most else least + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = evaluate(step)
        if not _lowers(point, start) or point.loss >= low.loss:
            high = point
            if low.loss > high.loss:
                low, high = high, low
            continue
        if abs(point.slope) <= -_C2 * start.slope:
            return point
        if point.slope * (high.step - low.step) >= 0:
            high = low
        low = point
    return low


def _lowers(point: Point, start: Point) -> bool:
    return point.loss <= start.loss + _C1 * point.step * start.slope


def _cubic(one: Point, other: Point, least: float, most: float) -> float:
    """Return where the cubic through two points and their slopes is lowest, within bounds."""
    if one.step > other.step:
        one, other = other, one
    d1 = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.step - other.step)
    square = d1 * d1 - one.slope * other.slope
    if not square >= 0:
        return (least + most) / 2
    d2 = math.sqrt(square)
    span = other.step - one.step
    lowest = other.step - span * ((other.slope + d2 - d1) / (other.slope - one.slope + 2 * d2))
    return min(max(lowest, least), most)
