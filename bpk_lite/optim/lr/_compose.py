"""Schedulers made of schedulers (R66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from bpk_lite.optim.lr._base import Number, Scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Composed", "Sequential"]

Reduction = Literal["prod", "sum", "avg"]


class Composed(Scheduler):
    """All children at once; their rates are multiplied, added or averaged."""

    def __init__(self, schedulers: Sequence[Scheduler], reduction: Reduction = "prod") -> None:
        if reduction not in ("prod", "sum", "avg"):
            raise ValueError(f"reduction is 'prod', 'sum' or 'avg', not {reduction!r}")
        self.schedulers = tuple(schedulers)
        self.reduction = reduction

    def children(self) -> tuple[Scheduler, ...]:
        """Return the schedulers."""
        return self.schedulers

    def step(self) -> float:
        """Step each child once, in order; return the reduction of their rates."""
        result = 1.0 if self.reduction == "prod" else 0.0
        for scheduler in self.schedulers:
            lr = scheduler.step()
            if self.reduction == "prod":
                result *= lr
            else:
                result += lr if self.reduction == "sum" else lr / len(self.schedulers)
        return result


class Sequential(Scheduler):
    """One child after the other: the next one from each milestone on.

    Raises:
        ValueError: no scheduler; not one milestone less than schedulers; milestones that are not
            at least 1 and increasing.
    """

    number: ClassVar[Number | None] = Number("step", "UInt", attribute="step_count")

    def __init__(self, schedulers: Sequence[Scheduler], milestones: Sequence[int]) -> None:
        if not schedulers:
            raise ValueError("a sequential scheduler needs at least one scheduler")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(milestones)} milestones for {len(schedulers)} schedulers; expected one less"
            )
        if any(low >= high for low, high in zip((0, *milestones), milestones, strict=False)):
            raise ValueError(f"milestones are {list(milestones)}, expected 1 or more, increasing")
        self.schedulers = tuple(schedulers)
        self.milestones = tuple(milestones)
        self.step_count = 0

    def children(self) -> tuple[Scheduler, ...]:
        """Return the schedulers."""
        return self.schedulers

    def step(self) -> float:
        """Step the child whose turn it is; return its rate."""
        current = sum(milestone <= self.step_count for milestone in self.milestones)
        self.step_count += 1
        return self.schedulers[current].step()
