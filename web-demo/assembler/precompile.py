"""``.py`` to ``.pyc`` by Pyodide's own compiler, under node; each result is kept.

Compiling takes most of a page's start, and a ``.pyc`` written by the Python that runs the assembler
would be of another version. The result is a function of the archive, of Pyodide and of the script,
so it is kept under the digest of the three and a changed source recompiles one wheel only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assembler import AssemblyError
from assembler.store import sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Archive", "Precompiler"]

_SCRIPT: Final = Path(__file__).with_name("precompile.mjs")


@dataclass(frozen=True, slots=True)
class Archive:
    """A wheel or the zipped standard library, and which members are left out."""

    name: str
    content: bytes
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Precompiler:
    """Compile with Pyodide's `core` files, keeping results in folder `kept`."""

    core: Mapping[str, bytes]
    kept: Path
    say: Callable[[str], None]

    def compile(self, archives: Sequence[Archive]) -> dict[str, bytes]:
        """Return each archive, by name, with its ``.py`` replaced by ``.pyc``.

        Raises:
            AssemblyError: If node is missing or too old, or the compilation fails.
        """
        compiler = sha256(
            b"".join(sha256(self.core[name]).encode() for name in sorted(self.core))
            + _SCRIPT.read_bytes()
        )
        places = {archive.name: self._place(archive, compiler) for archive in archives}
        missing = [archive for archive in archives if not places[archive.name].is_file()]
        if missing:
            self.say(f"compiling {', '.join(archive.name for archive in missing)} in Pyodide")
            for name, content in self._run(missing).items():
                _publish(content, places[name])
        return {name: place.read_bytes() for name, place in places.items()}

    def _place(self, archive: Archive, compiler: str) -> Path:
        key = f"{compiler} {sha256(archive.content)} {archive.leave_out}"
        return self.kept / archive.name / sha256(key.encode())

    def _run(self, archives: Sequence[Archive]) -> dict[str, bytes]:
        node = shutil.which("node")
        if node is None:
            raise AssemblyError(
                "node is not installed: it runs Pyodide to compile the page's Python. "
                "Install Node.js 20 or newer."
            )
        with tempfile.TemporaryDirectory(prefix="bpk-precompile-") as name:
            folder = Path(name)
            core = folder / "core"
            core.mkdir()
            for file_name, content in self.core.items():
                (core / file_name).write_bytes(content)
            jobs: list[dict[str, str | list[str]]] = []
            targets: dict[str, Path] = {}
            for place, archive in enumerate(archives):
                source, target = folder / f"{place}.in", folder / f"{place}.out"
                source.write_bytes(archive.content)
                targets[archive.name] = target
                jobs.append(
                    {
                        "from": str(source),
                        "to": str(target),
                        "leave_out": list(archive.leave_out),
                    }
                )
            job_file = folder / "jobs.json"
            job_file.write_text(json.dumps({"core": str(core), "archives": jobs}))
            done = subprocess.run(
                [node, str(_SCRIPT), str(job_file)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise AssemblyError(
                    f"compiling in Pyodide failed (node exited with {done.returncode}):\n"
                    f"{(done.stderr or done.stdout).strip()[-2000:]}"
                )
            return {name: target.read_bytes() for name, target in targets.items()}


def _publish(content: bytes, place: Path) -> None:
    """Write `content` at `place` at once, and drop what earlier sources gave."""
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    Path(scratch).replace(place)
    for older in place.parent.iterdir():
        if older != place:
            older.unlink(missing_ok=True)
