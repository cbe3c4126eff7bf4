"""torch's learning-rate schedulers whose formulas are Burn's (R62 to R66).

=============================  ==============================  ========================
torch                          Burn                            in the record
=============================  ==============================  ========================
CosineAnnealingLR              cosine annealing                ``current_iter``
LinearLR                       linear                          ``remaining_iters``
ExponentialLR                  exponential                     ``previous_lr``
StepLR                         step                            ``iter_idx``
ConstantLR, factor 1           constant                        nothing
ConstantLR, another factor     sequential of two constants     ``step``
SequentialLR                   sequential                      ``step``, the children's
ChainedScheduler               composed, product               the children's
=============================  ==============================  ========================

A torch scheduler has set its first rate when it is made, and ``step`` comes after the optimizer's;
Burn's gives its first rate at its first call, before the optimizer's step. So after k steps torch's
``last_epoch`` is k, and of Burn's calls 0 to k - 1 have been made: a scheduler that has not been
stepped is Burn's unstarted state (R62). Rates and lengths are in no record (R65): the scheduler
that loads one must have been made with the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import lr_scheduler as schedulers

from bpk_lite.pack import RecordError, Scalar
from bpk_lite.records import LrSchedulerRecord
from bpk_lite.torch._lr_rules import CLOSE, is_plain, rule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["load_scheduler_record", "scheduler_into_record"]


def scheduler_into_record(scheduler: schedulers.LRScheduler) -> LrSchedulerRecord:
    """Return the state of a scheduler as training in Burn saves it, under the index 0 (R64).

    Raises:
        RecordError: Burn has no such scheduler, or not with these options; or the optimizer's rate
            is not the scheduler's, because something else has changed it too.
    """
    count = _count(scheduler)
    expected = _rates(scheduler, count)
    for group, rate, base in zip(
        scheduler.optimizer.param_groups, expected, _bases(scheduler), strict=True
    ):
        if not math.isclose(float(group["lr"]), rate, rel_tol=CLOSE, abs_tol=CLOSE * base):
            raise RecordError(
                f"after {count} steps {type(scheduler).__name__} gives a rate of {rate}, but the "
                f"optimizer's is {float(group['lr'])}: something else has changed it"
            )
    return LrSchedulerRecord(scalars=_save(scheduler, count, "0."))


def load_scheduler_record(scheduler: schedulers.LRScheduler, record: LrSchedulerRecord) -> None:
    """Take a scheduler, and its optimizer's rates, to where a record is; all or nothing.

    Args:
        scheduler: made with the rates and lengths of the one that was saved.
        record: what Burn, `bpk_lite.optim.lr` or `scheduler_into_record` has made.

    Raises:
        RecordError: Burn has no such scheduler; a number is missing, of another kind or out of this
            scheduler's range, or the record has others.
    """
    used: set[str] = set()
    count = _load(scheduler, record.scalars, "0.", used)
    spare = sorted(name for name in record.scalars if name not in used)
    if spare:
        raise RecordError(
            f"{', '.join(spare)} belongs to nothing in {type(scheduler).__name__}; "
            "a record that training in Burn saves has the index 0. in front (R64)"
        )
    rates = _rates(scheduler, count)
    _place(scheduler, count)
    for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def _bases(scheduler: Any) -> list[float]:
    return [float(group["initial_lr"]) for group in scheduler.optimizer.param_groups]


def _base(scheduler: Any) -> float:
    """Return the base rate that goes into a number; Burn's number has room for one."""
    bases = set(_bases(scheduler))
    if len(bases) > 1 and isinstance(scheduler, schedulers.ExponentialLR):
        raise RecordError(
            "Burn keeps the rate itself of an exponential scheduler, and this optimizer's groups "
            f"have {len(bases)} different ones"
        )
    return bases.pop()


def _children(scheduler: Any) -> list[Any]:
    found = list(scheduler._schedulers)
    for child in found:
        rule_of(child)  # no nesting
        if isinstance(scheduler, schedulers.ChainedScheduler) and (
            isinstance(child, schedulers.ExponentialLR) or getattr(child, "eta_min", 0) != 0
        ):
            raise RecordError(
                f"a ChainedScheduler with {type(child).__name__}"
                f"{'' if isinstance(child, schedulers.ExponentialLR) else ' and eta_min'} "
                "is no product of schedulers of Burn"
            )
    return found


def _count(scheduler: Any) -> int:
    """Return how often the scheduler has been stepped."""
    if isinstance(scheduler, schedulers.ChainedScheduler):
        counts = {int(child.last_epoch) for child in _children(scheduler)}
        if len(counts) > 1:
            raise RecordError("the schedulers of a ChainedScheduler have been stepped apart")
        return counts.pop()
    if not isinstance(scheduler, schedulers.SequentialLR):
        rule_of(scheduler)
    return int(scheduler.last_epoch)


def _counts(scheduler: Any, count: int) -> list[int]:
    """Return how many rates each child of a SequentialLR has given to steps that are done."""
    starts = [0, *scheduler._milestones]
    ends = [*scheduler._milestones, math.inf]
    return [
        int(min(max(count - start, 0), end - start))
        for start, end in zip(starts, ends, strict=True)
    ]


def _current(scheduler: Any, count: int) -> int:
    return sum(milestone <= count for milestone in scheduler._milestones)


def _rates(scheduler: Any, count: int) -> list[float]:
    """Return the rate of each param group at a count, by the formula."""
    bases = _bases(scheduler)
    if isinstance(scheduler, schedulers.SequentialLR):
        now = _current(scheduler, count)
        return _rates(_children(scheduler)[now], _counts(scheduler, count)[now])
    if isinstance(scheduler, schedulers.ChainedScheduler):
        factor = math.prod(rule_of(c).rate(c, 1.0, count) for c in _children(scheduler))
        return [base * factor for base in bases]
    rule = rule_of(scheduler)
    return [rule.rate(scheduler, base, count) for base in bases]


def _save(scheduler: Any, count: int, prefix: str) -> dict[str, Scalar]:
    if isinstance(scheduler, schedulers.SequentialLR):
        scalars = {f"{prefix}step": Scalar("UInt", count)}
        counts = _counts(scheduler, count)
        for index, child in enumerate(_children(scheduler)):
            scalars |= _save(child, counts[index], f"{prefix}{index}.")
        return scalars
    if isinstance(scheduler, schedulers.ChainedScheduler):
        scalars = {}
        for index, child in enumerate(_children(scheduler)):
            scalars |= _save(child, count, f"{prefix}{index}.")
        return scalars
    if is_plain(scheduler):
        return {}
    rule = rule_of(scheduler)
    return {f"{prefix}{rule.field}": rule.save(scheduler, _base(scheduler), count)}


def _load(scheduler: Any, scalars: Mapping[str, Scalar], prefix: str, used: set[str]) -> int:
    """Return the count that a record stands for."""
    if isinstance(scheduler, schedulers.SequentialLR):
        count = _number(scalars, f"{prefix}step", used, lambda found: found.as_int(signed=False))
        wanted = _counts(scheduler, count)
        for index, child in enumerate(_children(scheduler)):
            _agree(_load(child, scalars, f"{prefix}{index}.", used), wanted[index], child, index)
        return count
    if isinstance(scheduler, schedulers.ChainedScheduler):
        children = _children(scheduler)
        counts = [
            _load(child, scalars, f"{prefix}{index}.", used) for index, child in enumerate(children)
        ]
        known = [n for child, n in zip(children, counts, strict=True) if not is_plain(child)]
        # a line that has ended does not tell how long ago
        count = max(known, default=max(int(children[0].last_epoch), 0))
        for index, child in enumerate(children):
            _agree(counts[index], count, child, index)
        return count
    if is_plain(scheduler):
        return max(int(scheduler.last_epoch), 0)
    rule, base = rule_of(scheduler), _base(scheduler)
    return _number(
        scalars, f"{prefix}{rule.field}", used, lambda found: rule.load(scheduler, base, found)
    )


def _number(
    scalars: Mapping[str, Scalar], name: str, used: set[str], read: Callable[[Scalar], int]
) -> int:
    used.add(name)
    if name not in scalars:
        raise RecordError(f"{name} is missing; is it the record of another scheduler?")
    try:
        return read(scalars[name])
    except ValueError as error:
        raise RecordError(f"{name} does not fit: {error}") from error


def _agree(found: int, expected: int, child: Any, index: int) -> None:
    if is_plain(child):
        return
    if isinstance(child, schedulers.LinearLR):
        last = child.total_iters + 1
        found, expected = min(found, last), min(expected, last)
    if found != expected:
        raise RecordError(
            f"scheduler {index} has been called {found} times, but by the others it is {expected}"
        )


def _place(scheduler: Any, count: int) -> None:
    """Put a scheduler and its children where they are after `count` steps."""
    kind = type(scheduler)
    if kind is schedulers.SequentialLR:
        now, counts = _current(scheduler, count), _counts(scheduler, count)
        for index, child in enumerate(_children(scheduler)):
            # a child that is done stays at the last rate that it gave, one to come is not begun
            at = counts[index] if index == now else counts[index] - 1
            _place(child, at)
    elif kind is schedulers.ChainedScheduler:
        for child in _children(scheduler):
            _place(child, count)
    if hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch = count
    if hasattr(scheduler, "_step_count"):
        scheduler._step_count = count + 1
    scheduler._last_lr = _rates(scheduler, max(count, 0))
