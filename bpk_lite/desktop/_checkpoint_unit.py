"""Model, optimizer and scheduler of an epoch, saved and restored as a unit."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpk_lite.desktop._checkpoint import PARTS, CheckpointError, epoch_number
from bpk_lite.desktop._checkpoint_folder import Folder
from bpk_lite.desktop._checkpoint_keep import Delete, Save, default_strategy
from bpk_lite.desktop._checkpoint_parts import apply, record_of
from bpk_lite.pack import ReadError, WriteError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpk_lite.desktop._checkpoint_keep import Strategy
    from bpk_lite.desktop._checkpoint_look import Epoch
    from bpk_lite.desktop._paths import AnyPath
    from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord, Record

__all__ = ["Checkpoints", "Restored"]

_METRICS = "metrics.json"
_REPLAYED = 10_000  # calls of a strategy at most, to rebuild what it remembers
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored.

    The records are read lazily and hold on to their files, so they stay readable after the epoch
    has been saved again or deleted.

    Attributes:
        epoch: its number; training goes on with the next.
        model: the model's record, or None if the epoch has none.
        optim: the optimizer's, likewise.
        scheduler: the scheduler's, likewise.
        metrics: what was given with the save.
    """

    epoch: int
    model: ModuleRecord | None
    optim: OptimizerRecord | None
    scheduler: LrSchedulerRecord | None
    metrics: Mapping[str, float]


class Checkpoints:
    """The epochs of a training run in a directory, under the names that Burn uses (R75).

    An epoch counts when all its parts are there, and only then: a process may be killed anywhere,
    while it saves an epoch for the first time, saves it again or deletes it. How is told in
    `bpk_lite.desktop._checkpoint_folder`. Burn reads these folders, and what Burn wrote is read
    here.

    One process writes to a directory; any number may read.

    Args:
        directory: made at the first save.
        keep: when to save and what to delete; by default Burn's, the last two epochs and the one
            with the lowest metric ``"loss"`` (R83).
        parts: what an epoch without a marker must have to count, as those that Burn wrote. Training
            in Burn writes all three; name fewer for a run that did not.
        durable: sync files, so that they also survive a loss of power. A kill they survive anyhow.
    """

    def __init__(
        self,
        directory: AnyPath,
        keep: Strategy | None = None,
        *,
        parts: Sequence[str] = tuple(PARTS),
        durable: bool = True,
    ) -> None:
        unknown = [part for part in parts if part not in PARTS]
        if unknown or not parts:
            raise ValueError(f"parts are one or more of {', '.join(PARTS)}, not {list(parts)}")
        self.directory = Path(directory)
        self.keep = default_strategy() if keep is None else keep
        self._folder = Folder(self.directory, parts, durable)
        self._asked = False

    def save(
        self,
        epoch: int,
        *,
        model: Any = None,
        optim: Any = None,
        scheduler: Any = None,
        metrics: Mapping[str, float] | None = None,
    ) -> bool:
        """Save an epoch if the strategy wants it, and delete what it no longer wants.

        The new epoch is whole before anything is deleted, also where Burn's metric strategy deletes
        first (R81). A strategy remembers things; before the first save of a process it is asked
        about the epochs before, so that it remembers the same as without an interruption, and what
        it wanted deleted last is deleted.

        Args:
            epoch: its number; one that exists is replaced, as a unit.
            model: a record, a module of bpk_lite or a torch module.
            optim: a record, an optimizer of bpk_lite or of torch (then with `model`).
            scheduler: a record, a scheduler of bpk_lite or of torch.
            metrics: name to value, kept for all epochs in ``metrics.json`` for strategies to see.

        Returns:
            Whether it was saved.

        Raises:
            TypeError: a value that makes no record; nothing happens then.
            ValueError: nothing to save.
            WriteError: the system refused; the epoch is as it was, unless the message says that it
                was saved.
            ProviderError, PlanError: from a record; the epoch is as it was.
        """
        number = epoch_number(epoch)
        given = {"model": model, "optim": optim, "scheduler": scheduler}
        given = {part: value for part, value in given.items() if value is not None}
        if not given:
            raise ValueError("nothing to save: give model=, optim= or scheduler=")
        records = {part: record_of(part, value, model) for part, value in given.items()}
        self._make_directory()
        known = self._note(number, metrics)

        def values(name: str, at: int) -> float | None:
            return known.get(at, {}).get(name)

        if not self._asked:
            self._replay(number, values)
            self._asked = True
        actions = self.keep.actions(number, values)
        wanted = any(isinstance(action, Save) for action in actions)
        if wanted:
            self._folder.write(number, records, {"metrics": dict(metrics or {})})
        for action in actions:
            if isinstance(action, Delete):
                self._folder.delete(action.epoch)
        return wanted

    def epochs(self) -> list[int]:
        """Return the epochs that count, ascending. Changes nothing."""
        return [n for n in self._folder.numbers() if self._folder.look(n).problem is None]

    def latest(self) -> int | None:
        """Return the latest epoch that counts, or None. Changes nothing."""
        numbers = reversed(self._folder.numbers())
        return next((n for n in numbers if self._folder.look(n).problem is None), None)

    def incomplete(self) -> dict[int, str]:
        """Return the epochs that do not count, with the reason. Changes nothing."""
        looks = (self._folder.look(number) for number in self._folder.numbers())
        return {epoch.number: epoch.problem for epoch in looks if epoch.problem is not None}

    def restore(
        self,
        epoch: int | None = None,
        *,
        model: Any = None,
        optim: Any = None,
        scheduler: Any = None,
    ) -> Restored:
        """Load an epoch into what is given, all or nothing, in Burn's order (R77).

        Args:
            epoch: which; the latest that counts by default.
            model: takes the model's record, with the default options of R24: a module of bpk_lite,
                or a torch module.
            optim: takes the optimizer's; for torch's give `model` too.
            scheduler: takes the scheduler's.

        Returns:
            The epoch and its records, of all its parts.

        Raises:
            CheckpointError: no epoch counts, or this one does not, or it lacks a part that was
                asked for; says why.
            RecordError: a record does not fit what was given.
            ReadError, FormatError: a file cannot be read, or is broken.
        """
        number = self._newest() if epoch is None else epoch_number(epoch)
        found, records = self._open(number)
        targets = {"model": model, "optim": optim, "scheduler": scheduler}
        targets = {part: target for part, target in targets.items() if target is not None}
        lacking = [part for part in targets if part not in records]
        if lacking:
            raise CheckpointError(
                f"{self.directory}: epoch {number} was saved without {' and '.join(lacking)}"
            )
        apply(targets, records)
        metrics = json.loads(found.marker).get("metrics", {}) if found.marker else {}
        parts: dict[str, Any] = {part: records.get(part) for part in PARTS}
        return Restored(number, **parts, metrics=metrics)

    def delete(self, epoch: int) -> None:
        """Delete an epoch, whether it counts or not; one that does not exist is no error (R74).

        Raises:
            WriteError: the system refused.
        """
        self._folder.delete(epoch_number(epoch))

    def _newest(self) -> int:
        latest = self.latest()
        if latest is None:
            reasons = [f"epoch {n} does not count: {why}" for n, why in self.incomplete().items()]
            raise CheckpointError(
                "; ".join([f"{self.directory} has no complete epoch", *reasons, *self._hint()])
            )
        return latest

    def _hint(self) -> list[str]:
        looks = [self._folder.look(number) for number in self._folder.numbers()]
        found = {part for each in looks if each.marker is None for part in each.files}
        if not found or found >= set(self._folder.parts):
            return []
        parts = tuple(part for part in PARTS if part in found)
        return [f"if the run saved no other parts, open it with parts={parts}"]

    def _open(self, number: int) -> tuple[Epoch, dict[str, Record]]:
        """Open all parts of one save, though another process may be saving the epoch again."""
        for _ in range(_TRIES):
            epoch = self._folder.look(number)
            if epoch.problem is not None:
                raise CheckpointError(
                    f"{self.directory}: epoch {number} does not count: {epoch.problem}"
                )
            try:
                records = {part: PARTS[part].load(path) for part, path in epoch.files.items()}
            except ReadError:
                if self._folder.look(number) == epoch:
                    raise
                continue
            if self._folder.look(number).marker == epoch.marker:
                return epoch, records
        raise CheckpointError(f"{self.directory}: epoch {number} is being saved over and over")

    def _make_directory(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"cannot make {self.directory}: {error.strerror}") from error

    def _note(self, epoch: int, metrics: Mapping[str, float] | None) -> dict[int, dict[str, float]]:
        """Add the metrics of an epoch to those kept; drop later ones, of a run that was rewound."""
        known: dict[int, dict[str, float]] = {}
        path = self.directory / _METRICS
        with contextlib.suppress(FileNotFoundError, ValueError, AttributeError):
            known = {int(at): dict(row) for at, row in json.loads(path.read_bytes()).items()}
        before = {at: row for at, row in known.items() if at < epoch}
        if metrics is not None:
            before[epoch] = {name: float(value) for name, value in metrics.items()}
        if before != known:
            self._folder.write_json(_METRICS, {str(at): row for at, row in before.items()})
        return before

    def _replay(self, epoch: int, values: Any) -> None:
        """Ask the strategy about the epochs before; do again the deletes of the last of them."""
        actions: Sequence[Any] = ()
        for number in range(max(1, epoch - _REPLAYED), epoch):
            actions = self.keep.actions(number, values)
        for action in actions:
            if isinstance(action, Delete):
                self._folder.delete(action.epoch)

    def __repr__(self) -> str:
        return f"<Checkpoints {self.directory}>"
