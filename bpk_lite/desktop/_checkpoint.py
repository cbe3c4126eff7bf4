"""Records by epoch, one file each: Burn's file checkpointer (R71 to R75)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from bpk_lite.pack import BpkError, WriteError
from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord, Record

if TYPE_CHECKING:
    from bpk_lite.desktop._paths import AnyPath

__all__ = [
    "PARTS",
    "Checkpoint",
    "CheckpointError",
    "Checkpointer",
    "FileCheckpointer",
    "NoCheckpoint",
    "epoch_number",
    "file_name",
]

PARTS: dict[str, type[Record]] = {
    "model": ModuleRecord,
    "optim": OptimizerRecord,
    "scheduler": LrSchedulerRecord,
}
"""The names that supervised training in Burn uses, in the order in which it saves (R75, R77)."""

C = TypeVar("C")


class CheckpointError(BpkError, LookupError):
    """There is no such checkpoint, or only a part of it; the message says what is missing."""


@runtime_checkable
class Checkpoint(Protocol):
    """What can be checkpointed (R71). The three records can, and `NoCheckpoint`."""

    def save(self, path: Any) -> str | None:
        """Write it to a file; return the path with its extension, or None for no file."""
        ...

    def into_bytes(self) -> bytes:
        """Return it as bytes."""
        ...

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read it from a file."""
        ...

    @classmethod
    def from_bytes(cls, buffer: Any) -> Self:
        """Read it from bytes."""
        ...


class NoCheckpoint:
    """Nothing to checkpoint, what ``()`` is in Burn: no file, and the single byte 0 (R71)."""

    def save(self, path: Any) -> None:
        """Write no file."""

    def into_bytes(self) -> bytes:
        """Return the byte 0."""
        return b"\0"

    @classmethod
    def load(cls, path: Any) -> Self:
        """Succeed, whether there is a file or not."""
        return cls()

    @classmethod
    def from_bytes(cls, buffer: Any) -> Self:
        """Succeed, whatever the bytes are."""
        return cls()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoCheckpoint)

    def __hash__(self) -> int:
        return hash(NoCheckpoint)

    def __repr__(self) -> str:
        return "NoCheckpoint()"


class Checkpointer(Protocol[C]):
    """Saves, restores and deletes one kind of thing by epoch (R72)."""

    def save(self, epoch: int, record: C | None) -> None:
        """Save a record as that of an epoch; None saves nothing."""
        ...

    def restore(self, epoch: int) -> C:
        """Return the record of an epoch."""
        ...

    def delete(self, epoch: int) -> None:
        """Delete the record of an epoch, if there is one."""
        ...


class FileCheckpointer:
    """One kind of record in a directory: ``{directory}/{name}-{epoch}.bpk`` (R74).

    The directory is made with its parents; failure to do so shows when something is saved. Saves
    are atomic and replace an existing epoch. What was restored stays readable after that, since
    records hold on to the file that they were read from.

    For model, optimizer and scheduler together use `Checkpoints`, which keeps them as a unit.

    Attributes:
        directory: where the files are.
        name: of the files, such as ``"model"``.
        kind: what `restore` returns: by default `ModuleRecord`, `OptimizerRecord` or
            `LrSchedulerRecord` for Burn's names of R75, `Record` for any other.
    """

    def __init__(self, directory: AnyPath, name: str, kind: type[Checkpoint] | None = None) -> None:
        self.directory = Path(directory)
        self.name = name
        self.kind: type[Checkpoint] = kind or PARTS.get(name, Record)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # saving will say it (R74)

    def path(self, epoch: int) -> Path:
        """Return the file of an epoch, whether there is one or not."""
        return self.directory / file_name(self.name, epoch)

    def save(self, epoch: int, record: Checkpoint | None) -> None:
        """Write the file of an epoch, atomically; None writes nothing.

        Raises:
            WriteError, ProviderError, PlanError: see `Plan.write_to_file`.
        """
        if record is not None:
            record.save(self.path(epoch))

    def restore(self, epoch: int) -> Any:
        """Return the record of an epoch, lazily.

        Raises:
            ReadError: there is no such file, or it cannot be read.
            FormatError: it is not a pack, or a broken one.
        """
        return self.kind.load(self.path(epoch))

    def delete(self, epoch: int) -> None:
        """Delete the file of an epoch. One that does not exist is no error (R74).

        Raises:
            WriteError: the system refused.
        """
        remove(self.path(epoch))

    def __repr__(self) -> str:
        return f"<FileCheckpointer {self.directory / self.name}-*.bpk>"


def file_name(name: str, epoch: int) -> str:
    """Return the name of an epoch's file (R74)."""
    return f"{name}-{epoch_number(epoch)}.bpk"


def epoch_number(epoch: int) -> int:
    """Return `epoch`, checked.

    Raises:
        TypeError: it is no integer.
        ValueError: it is negative.
    """
    if isinstance(epoch, bool) or not isinstance(epoch, int):
        raise TypeError(f"an epoch is an integer, not {epoch!r}")
    if epoch < 0:
        raise ValueError(f"an epoch is 0 or more, not {epoch}")
    return epoch


def remove(path: Path) -> None:
    """Remove a file if it exists. Raises WriteError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(f"cannot delete {path}: {error.strerror}") from error
