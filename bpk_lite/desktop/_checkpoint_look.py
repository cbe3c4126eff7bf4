"""What a folder has of each epoch, and whether it counts. Changes nothing.

How epochs are written, and why they can be judged, is told in
`bpk_lite.desktop._checkpoint_folder`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bpk_lite.desktop._checkpoint import PARTS, file_name
from bpk_lite.pack import FormatError, Reader, ReadError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["OWN", "Epoch", "EpochReader", "stamp_of"]

OWN = re.compile(
    rf"(?:(?P<part>{'|'.join(PARTS)})-(?P<epoch>0|[1-9]\d*)\.bpk"
    r"|checkpoint-(?P<marked>0|[1-9]\d*)\.(?:json|deleting)|metrics\.json)"
    r"(?P<scratch>\.(?P<pid>\d+)-[0-9a-f]+\.tmp)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Epoch:
    """What a folder has of an epoch.

    Attributes:
        number: the epoch.
        files: part to the file that holds it now.
        problem: why the epoch does not count, or None.
        marker: the marker's bytes, or None; another save gives others.
        unfinished: scratch file to place, for a save that has not been finished.
    """

    number: int
    files: Mapping[str, Path]
    problem: str | None
    marker: bytes | None = None
    unfinished: Mapping[Path, Path] = field(default_factory=dict)


class EpochReader:
    """A directory of epochs, to look at.

    Attributes:
        path: the directory.
        parts: the parts that an epoch without a marker must have.
    """

    def __init__(self, path: Path, parts: Sequence[str]) -> None:
        self.path = path
        self.parts = tuple(parts)

    def numbers(self) -> list[int]:
        """Return the epochs of which there is anything, ascending."""
        found = set()
        for name in self._names():
            match = OWN.fullmatch(name)
            if match is not None and not match["scratch"] and (match["epoch"] or match["marked"]):
                found.add(int(match["epoch"] or match["marked"]))
        return sorted(found)

    def look(self, number: int) -> Epoch:
        """Return what there is of an epoch. Changes nothing."""
        try:
            marker = self._marker(number).read_bytes()
        except FileNotFoundError:
            epoch = self._unmarked(number)
        except OSError as error:
            return Epoch(number, {}, f"{self._marker(number)} cannot be read: {error.strerror}")
        else:
            epoch = self._marked(number, marker)
        if self._tombstone(number).exists():
            return Epoch(number, epoch.files, "it is being deleted", epoch.marker)
        return epoch

    def _unmarked(self, number: int) -> Epoch:
        places = {part: self._place(part, number) for part in PARTS}
        files = {part: place for part, place in places.items() if place.exists()}
        missing = [places[part].name for part in self.parts if part not in files]
        if missing:
            return Epoch(number, files, f"there is no {' and no '.join(missing)}")
        for place in files.values():
            try:
                Reader.from_file(place, exact=True).close()
            except (ReadError, FormatError) as error:
                return Epoch(number, files, str(error))
        return Epoch(number, files, None)

    def _marked(self, number: int, marker: bytes) -> Epoch:
        try:
            rows = json.loads(marker)["parts"]
            parts = {
                str(part): (self.path / Path(row["scratch"]).name, row["bytes"], row["identity"])
                for part, row in rows.items()
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            return Epoch(number, {}, f"{self._marker(number).name} is broken", marker)
        files: dict[str, Path] = {}
        unfinished: dict[Path, Path] = {}
        problems: list[str] = []
        same: dict[str, bool] = {}
        for part, (scratch, size, identity) in parts.items():
            place = self._place(part, number)
            file = scratch if scratch.exists() else place
            try:
                status = file.stat()
            except OSError:
                problems.append(f"there is no {place.name}")
                continue
            files[part] = file
            same[place.name] = stamp_of(status) == identity
            if file is scratch:
                unfinished[scratch] = place
            if status.st_size != size:
                problems.append(f"{file.name} has {status.st_size} bytes, saved were {size}")
        if not problems and len(set(same.values())) == 2:
            others = " and ".join(name for name, kept in same.items() if not kept)
            problems.append(f"{others} has been replaced since it was saved with the others")
        return Epoch(number, files, "; ".join(problems) or None, marker, unfinished)

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.path))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ReadError(f"cannot read {self.path}: {error.strerror}") from error

    def _place(self, part: str, number: int) -> Path:
        return self.path / file_name(part, number)

    def _marker(self, number: int) -> Path:
        return self.path / f"checkpoint-{number}.json"

    def _tombstone(self, number: int) -> Path:
        return self.path / f"checkpoint-{number}.deleting"


def stamp_of(status: os.stat_result) -> str:
    """Return what a file keeps when it is renamed, and a copy does not have."""
    if sys.platform == "emscripten":
        return "browser"  # JupyterLite's drive keeps neither; sizes must do there
    return f"{status.st_ino}-{status.st_mtime_ns}"
