"""What every scheduler has: one number, or its children's, and a record of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from bpk_lite.pack import RecordError, Scalar
from bpk_lite.records import LrSchedulerRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Number", "Scheduler"]


@dataclass(frozen=True, slots=True)
class Number:
    """The one number that a scheduler's record holds (R62).

    Attributes:
        name: in the record.
        kind: as which it is stored.
        bits: its width; what does not fit is not loaded.
        attribute: of the scheduler, where that is not the name.
    """

    name: str
    kind: Literal["UInt", "Int", "Float"]
    bits: int = 64
    attribute: str = ""

    def read(self, scheduler: Scheduler) -> Scalar:
        """Return the number of `scheduler` as a scalar."""
        return Scalar(self.kind, getattr(scheduler, self.attribute or self.name))

    def convert(self, scalar: Scalar) -> float:
        """Convert as C121 does: integers across kinds if they fit, floats from any number.

        Raises:
            ValueError: it does not convert.
        """
        if self.kind == "Float":
            return scalar.as_float()
        return scalar.as_int(self.bits, signed=self.kind == "Int")

    def write(self, scheduler: Scheduler, value: float) -> None:
        """Give `scheduler` the number."""
        setattr(scheduler, self.attribute or self.name, value)


class Scheduler:
    """A scheduler. Subclasses have one number or children, and `step`."""

    number: ClassVar[Number | None] = None

    def step(self) -> float:
        """Return the next learning rate."""
        raise NotImplementedError

    def children(self) -> tuple[Scheduler, ...]:
        """Return the schedulers below this one, in order of their index."""
        return ()

    def roots(self) -> tuple[Scheduler, ...]:
        """Return what a record has at the top, in order: training wraps one scheduler too (R64)."""
        return (self,)

    def into_record(self) -> LrSchedulerRecord:
        """Return the state as training in Burn saves it, each root under its index."""
        return LrSchedulerRecord(
            scalars={name: number.read(owner) for name, owner, number in self._numbers()}
        )

    def load_record(
        self, record: LrSchedulerRecord, *, allow_partial: bool = False
    ) -> tuple[str, ...]:
        """Take the state from a record; hyperparameters stay those of this scheduler (R65).

        All or nothing, unless `allow_partial`: then what is missing or does not convert keeps its
        value, as it does in Burn without a word (R67).

        Returns:
            What was left as it was, and names in the record that belong to nothing here.

        Raises:
            RecordError: a number is missing or does not convert, or the record has other names.
        """
        found: list[tuple[Scheduler, Number, float]] = []
        notes: list[str] = []
        unused = set(record.scalars)
        for name, owner, number in self._numbers():
            scalar = record.scalars.get(name)
            unused.discard(name)
            if scalar is None:
                notes.append(f"{name} is missing")
                continue
            try:
                found.append((owner, number, number.convert(scalar)))
            except ValueError:
                notes.append(f"{name} is {scalar}, expected {number.kind} of {number.bits} bits")
        notes += [f"{name} belongs to nothing here" for name in sorted(unused)]
        if record.tensors:
            notes.append(f"{len(record)} tensors; is it the record of a module or an optimizer?")
        if notes and not allow_partial:
            raise RecordError(
                f"the record does not fit {type(self).__name__}; nothing was loaded: "
                f"{'; '.join(notes)}; allow_partial=True keeps what does not fit as it is"
            )
        for owner, number, value in found:
            number.write(owner, value)
        return tuple(notes)

    def _numbers(self) -> Iterator[tuple[str, Scheduler, Number]]:
        """Yield the name in a record of each number, its owner and its description."""
        pending = [(f"{index}.", root) for index, root in reversed(list(enumerate(self.roots())))]
        while pending:
            prefix, scheduler = pending.pop()
            if scheduler.number is not None:
                yield prefix + scheduler.number.name, scheduler, scheduler.number
            below = [(f"{prefix}{i}.", child) for i, child in enumerate(scheduler.children())]
            pending += reversed(below)
