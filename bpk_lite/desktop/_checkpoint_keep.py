"""Which epochs to save and which to delete (R79 to R84).

A strategy is asked once per epoch and answers with actions. It sees metrics through a function from
metric and epoch to value, and looks at no file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

__all__ = [
    "Action",
    "Composed",
    "Delete",
    "KeepLastN",
    "Metric",
    "Save",
    "Strategy",
    "Values",
    "default_strategy",
]

Values: TypeAlias = Callable[[str, int], float | None]
"""The value of a metric at an epoch, or None where there is none."""


@dataclass(frozen=True, slots=True)
class Save:
    """Save the current epoch."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an epoch."""

    epoch: int


Action: TypeAlias = Save | Delete


def no_values(_name: str, _epoch: int) -> None:
    """Know no metric."""


class Strategy(Protocol):
    """Decides what to do at the end of an epoch (R79)."""

    def actions(self, epoch: int, values: Values = no_values) -> tuple[Action, ...]:
        """Return what to do, in order. Asked once per epoch, in ascending order."""
        ...


class KeepLastN:
    """Save always, and delete the epoch `n` back (R80).

    One epoch is deleted per call, so this is for epochs that count by one. With 0 the current epoch
    is saved and deleted.
    """

    def __init__(self, n: int) -> None:
        if n < 0:
            raise ValueError(f"the number of epochs to keep is 0 or more, not {n}")
        self.n = n

    def actions(self, epoch: int, values: Values = no_values) -> tuple[Action, ...]:
        """Return Save, and Delete if there was an epoch `n` back."""
        last = epoch - self.n
        return (Save(), Delete(last)) if last >= 1 else (Save(),)


class Metric:
    """Keep the epoch with the best value of a metric (R81).

    The earliest of equals stays, NaN is never best, and without data the current epoch is. Epochs
    are looked at from 1 to the first without data, and never beyond the current one: values that an
    interrupted run has left for later epochs do not count, as they would in Burn.

    Attributes:
        name: of the metric.
        lowest: whether low values are good.
        values: epoch to value or None, instead of what the asker knows.
    """

    def __init__(
        self,
        name: str = "loss",
        *,
        lowest: bool = True,
        values: Callable[[int], float | None] | None = None,
    ) -> None:
        self.name = name
        self.lowest = lowest
        self.values = values
        self._previous: int | None = None

    def actions(self, epoch: int, values: Values = no_values) -> tuple[Action, ...]:
        """Return Delete for the epoch that was best until now, Save if the current one is."""
        best = self._best(epoch, values)
        actions: list[Action] = []
        if self._previous is not None and self._previous != best:
            actions.append(Delete(self._previous))
        if best == epoch:
            actions.append(Save())
        self._previous = best
        return tuple(actions)

    def _best(self, current: int, values: Values) -> int:
        best, best_value = None, math.inf
        epoch = 1
        while epoch <= current:
            value = values(self.name, epoch) if self.values is None else self.values(epoch)
            if value is None:
                break
            value = value if self.lowest else -value
            if value < best_value:
                best, best_value = epoch, value
            epoch += 1
        if best is not None:
            return best
        return current if epoch == 1 else epoch  # one past the last, if nothing compares (R81)


class Composed:
    """Save if any strategy says so; delete an epoch once all of them have (R82).

    Saying nothing at all counts as wanting the current epoch deleted. Wishes are remembered.
    """

    def __init__(self, *strategies: Strategy) -> None:
        self.strategies: Sequence[Strategy] = strategies
        self._flags: dict[int, set[int]] = {}

    def actions(self, epoch: int, values: Values = no_values) -> tuple[Action, ...]:
        """Return Save, then the deletes that all strategies agree on."""
        save = False
        asked: dict[int, None] = {}  # an ordered set
        for index, strategy in enumerate(self.strategies):
            actions = strategy.actions(epoch, values)
            if not actions:
                self._flags.setdefault(epoch, set()).add(index)
            for action in actions:
                if isinstance(action, Save):
                    save = True
                else:
                    self._flags.setdefault(action.epoch, set()).add(index)
                    asked[action.epoch] = None
        agreed = [each for each in asked if len(self._flags[each]) == len(self.strategies)]
        for each in agreed:
            del self._flags[each]
        return (*((Save(),) if save else ()), *map(Delete, agreed))


def default_strategy() -> Composed:
    """Return the strategy of supervised training in Burn: the last two and the best loss (R83)."""
    return Composed(KeepLastN(2), Metric("loss"))
