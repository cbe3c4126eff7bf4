"""Schedulers for groups of params: what training in Burn uses (R64, R106)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpk_lite.optim.lr._base import Scheduler

if TYPE_CHECKING:
    from bpk_lite.nn import ParamGroup

__all__ = ["ModuleScheduler", "Rates"]


@dataclass(frozen=True, slots=True)
class Rates:
    """One learning rate for each group; a param has that of the last group that takes it.

    Attributes:
        base: for params that no group takes.
        groups: pairs of group and rate.
    """

    base: float
    groups: tuple[tuple[ParamGroup, float], ...] = ()

    def of(self, param_id: int, path: str | None) -> float:
        """Return the rate of a param."""
        rate = self.base
        for group, lr in self.groups:
            if group.matches(param_id, path):
                rate = lr
        return rate


class ModuleScheduler(Scheduler):
    """A base scheduler and others for groups of params.

    ``optimizer.step(grads, lr=scheduler.rates())``. `step` returns the base's rate alone.
    """

    def __init__(self, base: Scheduler) -> None:
        self.base = base
        self.groups: list[tuple[ParamGroup, Scheduler]] = []

    def add_group(self, group: ParamGroup, scheduler: Scheduler) -> ModuleScheduler:
        """Give the params of `group` a scheduler of their own; return self."""
        self.groups.append((group, scheduler))
        return self

    def roots(self) -> tuple[Scheduler, ...]:
        """Return the base and the groups' schedulers, which have the indices 0, 1 and so on."""
        return (self.base, *(scheduler for _, scheduler in self.groups))

    def rates(self) -> Rates:
        """Step every scheduler once; return their rates."""
        base = self.base.step()
        return Rates(base, tuple((group, each.step()) for group, each in self.groups))

    def step(self) -> float:
        """Step every scheduler once; return the base's rate."""
        return self.rates().base
