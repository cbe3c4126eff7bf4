"""Files by their sha256 in ``.cache/``: fetched once, checked whenever they are taken.

A file in the store is named by what is in it, so a new version never meets an old one, and nothing
in the store can be out of date. A damaged file is thrown away and fetched again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assembler import AssemblyError
from assembler.sources import Fetcher, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from assembler.lock import RuntimeFile

__all__ = ["Store", "sha256"]


def sha256(content: bytes) -> str:
    """Return the digest as the lock writes it, in lower-case hex."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Store:
    """The folder `root`; `say` gets a line for each file that had to be fetched."""

    root: Path
    say: Callable[[str], None]

    def get(self, files: Iterable[RuntimeFile]) -> dict[str, bytes]:
        """Return the content of all `files` by name, fetching the ones not in the store.

        Raises:
            AssemblyError: If a file can be had from none of its sources; it lists each attempt.
        """
        with tempfile.TemporaryDirectory(prefix="bpk-runtime-") as scratch:
            fetcher = Fetcher(Path(scratch))
            return {file.name: self._one(file, fetcher) for file in files}

    def _one(self, file: RuntimeFile, fetcher: Fetcher) -> bytes:
        kept = self.find(file.sha256)
        if kept is not None:
            return kept
        attempts = []
        for source in file.sources:
            try:
                content = fetcher.get(source)
            except SourceError as error:
                attempts.append(f"{source}\n     {error}")
                continue
            found = sha256(content)
            if found == file.sha256:
                self.put(content)
                self.say(f"fetched {file.name} ({len(content) / 1e6:.1f} MB) from {source}")
                return content
            attempts.append(f"{source}\n     gave another file: its sha256 is {found}")
        tried = "\n".join(f"  {place}. {text}" for place, text in enumerate(attempts, 1))
        raise AssemblyError(
            f"cannot get {file.name} (sha256 {file.sha256}). Tried, in this order:\n{tried}\n"
            f"One of these places must be reachable, once: the file is then kept in {self.root}.\n"
            "With the file at hand, put it there yourself, named by its sha256."
        )

    def find(self, digest: str) -> bytes | None:
        """Return the file with this sha256, or None when the store does not have it whole."""
        path = self.root / digest
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if sha256(content) != digest:
            self.say(f"{path} is damaged; it is fetched again")
            path.unlink(missing_ok=True)
            return None
        return content

    def put(self, content: bytes) -> str:
        """Keep `content` and return its sha256. A reader never sees half a file."""
        digest = sha256(content)
        self.root.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=self.root, prefix=".incoming-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(scratch).replace(self.root / digest)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
        return digest
