"""Epochs of several files that come and go as a unit, whatever kills the process in between.

Burn's training writes ``model-3.bpk``, ``optim-3.bpk`` and ``scheduler-3.bpk`` one by one (R77), so
a kill leaves parts, and a kill while an epoch is saved *again* leaves a mixture that looks whole.
The files here have the same names and content, and two small ones beside them::

    checkpoint-3.json        the marker: which files the epoch has, and what each of them is
    checkpoint-3.deleting    the tombstone: the epoch is being deleted

A save goes

1. every part into a scratch file ``model-3.bpk.<pid>-<random>.tmp``, synced;
2. the marker, atomically: it names parts and scratch files. **From here on the epoch is the new
   one**; before, it was the old one or none;
3. each scratch file is renamed to its place.

A reader that finds a marker takes a part from its scratch file while that exists, else from its
place, so step 3 may be interrupted anywhere, and the next writer finishes it. A delete writes the
tombstone, removes the parts, then the marker, then the tombstone; the next writer finishes that
too.

Renaming keeps a file's inode and modification time, and the marker knows them. If some files of an
epoch are those that were saved and some are not, somebody else has replaced a part: the epoch is a
mixture and does not count. If none is, the folder has been copied, or another program has saved the
whole epoch: it counts.

A folder without markers, as Burn writes it, is judged by its files: an epoch counts if it has all
the parts that the run saves, and each of them opens as a pack.

Readers change nothing, and there may be any number of them, on any machine. There must be one
writer. Scratch files whose process is gone are removed by the next writer.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bpk_lite.desktop._atomic import ScratchFile, sync_directory, write_error
from bpk_lite.desktop._checkpoint import PARTS, remove
from bpk_lite.desktop._checkpoint_look import OWN, Epoch, EpochReader, stamp_of
from bpk_lite.desktop._output import write_layout
from bpk_lite.pack import WriteError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bpk_lite.records import Record

__all__ = ["Folder"]

_STARTED = time.time() - 1  # the clock of a file system may be a little behind


class Folder(EpochReader):
    """A directory of epochs, to write to.

    Attributes:
        durable: sync, so that a save also survives a loss of power.
    """

    def __init__(self, path: Path, parts: Sequence[str], durable: bool) -> None:
        super().__init__(path, parts)
        self.durable = durable

    def write(self, number: int, records: Mapping[str, Record], more: Mapping[str, Any]) -> None:
        """Save an epoch: when this returns it is the new one, after an error the old one or none.

        Raises:
            WriteError: the system refused. If that was after the epoch began to count, the message
                says so; the next save or delete finishes it.
            ProviderError, PlanError: from a record.
        """
        self.recover()
        token = f"{os.getpid()}-{secrets.token_hex(8)}"
        rows: dict[str, Any] = {}
        scratches: list[Path] = []
        marker = b""
        try:
            for part, record in records.items():
                place = self._place(part, number)
                scratch = place.with_name(f"{place.name}.{token}.tmp")
                scratches.append(scratch)
                rows[part] = self._stage(record, place, scratch)
            if self.durable:
                sync_directory(self._marker(number))
            marker = json.dumps({"epoch": number, "parts": rows, **more}, indent=1).encode()
            self._put(self._marker(number), marker)
        except BaseException:
            if not marker or self.look(number).marker != marker:
                for scratch in scratches:
                    with suppress(OSError):
                        scratch.unlink()
            raise
        self._finish(self.look(number))

    def delete(self, number: int) -> None:
        """Delete an epoch; if interrupted, it does not count, and the next writer finishes it.

        Raises:
            WriteError: the system refused.
        """
        self.recover()
        epoch = self.look(number)
        if not epoch.files and epoch.marker is None:
            return
        try:
            self._tombstone(number).touch()
        except OSError as error:
            raise write_error(self._tombstone(number), error) from error
        self._bury(number)

    def recover(self) -> None:
        """Finish what a killed writer has begun, and remove what it has left.

        Raises:
            WriteError: the system refused.
        """
        names = self._names()
        matches = {name: match for name in names if (match := OWN.fullmatch(name)) is not None}
        for name, match in matches.items():
            if match["marked"] and not match["scratch"] and name.endswith(".deleting"):
                self._bury(int(match["marked"]))
        for name, match in matches.items():
            if match["marked"] and not match["scratch"] and name.endswith(".json"):
                epoch = self.look(int(match["marked"]))
                self._finish(epoch)
                places = [self._place(part, epoch.number) for part in PARTS]
                if not epoch.files and not any(place.exists() for place in places):
                    remove(self._marker(epoch.number))  # its files went without it
        for name, match in matches.items():
            if match["scratch"] and self._is_left(name, int(match["pid"])):
                remove(self.path / name)

    def write_json(self, name: str, value: Any) -> None:
        """Write a small file, atomically. Raises WriteError."""
        self._put(self.path / name, json.dumps(value, indent=1).encode())

    def _stage(self, record: Record, place: Path, scratch: Path) -> dict[str, Any]:
        """Write a part beside its place; return its row in the marker."""
        plan = record.plan()
        with ScratchFile(place) as file:
            file.reserve(plan.size)
            write_layout(plan, file.fileno(), file.path, early=self.durable)
            status = file.seal(durable=self.durable)
            try:
                # a name that no later process with the same number can make again
                os.rename(file.path, scratch)
            except OSError as error:
                raise write_error(file.path, error) from error
        return {
            "scratch": scratch.name,
            "bytes": status.st_size,
            "identity": stamp_of(status),
        }

    def _put(self, path: Path, data: bytes) -> None:
        with ScratchFile(path) as scratch:
            scratch.write(data)
            scratch.commit(durable=self.durable)

    def _finish(self, epoch: Epoch) -> None:
        """Move the parts of a save to their places, and parts that it does not have away."""
        if not epoch.unfinished:
            return
        for part in PARTS:
            if part not in epoch.files:
                remove(self._place(part, epoch.number))
        for scratch, place in epoch.unfinished.items():
            try:
                os.replace(scratch, place)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise WriteError(
                    f"epoch {epoch.number} was saved, but {scratch} cannot be renamed to {place}: "
                    f"{error.strerror}"
                ) from error

    def _bury(self, number: int) -> None:
        epoch = self.look(number)
        for part in PARTS:
            remove(self._place(part, number))
        for file in epoch.files.values():
            remove(file)
        remove(self._marker(number))
        remove(self._tombstone(number))

    def _is_left(self, name: str, pid: int) -> bool:
        """Whether the process that made a scratch file is gone.

        The process of our own number is, if the file is older than this program: in a container
        every run may have the same number.
        """
        if pid == os.getpid():
            try:
                return (self.path / name).stat().st_mtime < _STARTED
            except OSError:
                return False
        if os.name != "posix":
            return False  # there is no harmless way to ask
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        return False
