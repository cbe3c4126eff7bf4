"""The formulas that torch's schedulers and Burn's share, and the number that Burn keeps (R66)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.optim import lr_scheduler as schedulers

from bpk_lite.pack import RecordError, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CLOSE", "LrRule", "is_plain", "rule_of"]

CLOSE = 1e-6
"""Of the base rate: torch computes rates from the one before, and errors add up."""

_WORD = 1 << 64


@dataclass(frozen=True, slots=True)
class LrRule:
    """A scheduler with one number.

    Attributes:
        rate: scheduler, base rate and count to the rate.
        field: Burn's name of the number.
        save: scheduler, base rate and count to the number.
        load: scheduler, base rate and number to the count; raises ValueError.
    """

    rate: Callable[[Any, float, int], float]
    field: str
    save: Callable[[Any, float, int], Scalar]
    load: Callable[[Any, float, Scalar], int]


def _cosine_rate(s: Any, base: float, count: int) -> float:
    half = (1 + math.cos(count / s.T_max * math.pi)) / 2
    return float(s.eta_min) + (base - float(s.eta_min)) * half


def _linear_rate(s: Any, base: float, count: int) -> float:
    done = min(count, s.total_iters) / s.total_iters
    return base * float(s.start_factor + (s.end_factor - s.start_factor) * done)


def _linear_load(s: Any, _base: float, number: Scalar) -> int:
    remaining = number.as_int(signed=False)
    if remaining > s.total_iters + 1:
        raise ValueError(f"{number} is more than the {s.total_iters} iterations and 1")
    return int(s.total_iters + 1 - remaining)


def _constant_rate(s: Any, base: float, count: int) -> float:
    return base * float(s.factor) if count < s.total_iters else base


def _exponential_load(s: Any, base: float, number: Scalar) -> int:
    rate = number.as_float() * s.gamma
    if s.gamma == 1:
        return max(int(s.last_epoch), 0)  # every count gives the same
    count = round(math.log(rate / base) / math.log(s.gamma)) if rate > 0 else -1
    if count < 0 or not math.isclose(base * s.gamma**count, rate, rel_tol=CLOSE):
        raise ValueError(f"{number} is no rate of {base} times powers of {s.gamma}")
    return int(count)


_RULES: dict[type[Any], LrRule] = {
    schedulers.CosineAnnealingLR: LrRule(
        _cosine_rate,
        "current_iter",
        lambda _s, _base, count: Scalar("UInt", (count - 1) % _WORD),
        lambda _s, _base, number: (number.as_int(signed=False) + 1) % _WORD,
    ),
    schedulers.LinearLR: LrRule(
        _linear_rate,
        "remaining_iters",
        lambda s, _base, count: Scalar("UInt", max(s.total_iters + 1 - count, 0)),
        _linear_load,
    ),
    schedulers.ExponentialLR: LrRule(
        lambda s, base, count: base * float(s.gamma) ** count,
        "previous_lr",
        lambda s, base, count: Scalar(
            "Float", base * s.gamma ** (count - 1) if count else base / s.gamma
        ),
        _exponential_load,
    ),
    schedulers.StepLR: LrRule(
        lambda s, base, count: base * float(s.gamma) ** (count // s.step_size),
        "iter_idx",
        lambda _s, _base, count: Scalar("Int", count - 1),
        lambda _s, _base, number: number.as_int(32) + 1,
    ),
    schedulers.ConstantLR: LrRule(
        _constant_rate,
        "step",
        lambda _s, _base, count: Scalar("UInt", count),
        lambda _s, _base, number: number.as_int(signed=False),
    ),
}


def rule_of(scheduler: Any) -> LrRule:
    found = _RULES.get(type(scheduler))
    if found is None:
        names = sorted(each.__name__ for each in _RULES)
        raise RecordError(
            f"Burn has no counterpart of {type(scheduler).__name__}; it shares with torch "
            f"{', '.join(names)}, SequentialLR and ChainedScheduler of these"
        )
    return found


def is_plain(scheduler: Any) -> bool:
    """Whether this is the constant rate, which has no number."""
    return isinstance(scheduler, schedulers.ConstantLR) and (
        scheduler.factor == 1 or scheduler.total_iters == 0
    )
