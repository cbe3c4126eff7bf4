"""This project's own wheels, and what any wheel says about itself."""

from __future__ import annotations

import importlib.util
import io
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement

from assembler import AssemblyError

__all__ = ["Wheel", "build"]

# what markers of dependencies are asked about: Pyodide, and none of a wheel's extras
_ENVIRONMENT = {
    "sys_platform": "emscripten",
    "os_name": "posix",
    "python_version": "3.14",
    "extra": "",
}


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel in memory."""

    file_name: str
    content: bytes

    def describe(self) -> WheelFacts:
        """Read name, version, dependencies and top-level packages from the wheel's own metadata."""
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            members = archive.namelist()
            path = next(name for name in members if name.endswith(".dist-info/METADATA"))
            metadata = HeaderParser().parsestr(archive.read(path).decode("utf-8"))
        top = {name.split("/")[0].removesuffix(".py") for name in members}
        return WheelFacts(
            name=normalize(metadata["Name"]),
            version=metadata["Version"],
            depends=tuple(
                sorted(
                    normalize(needed.name)
                    for needed in map(Requirement, metadata.get_all("Requires-Dist", ()))
                    if needed.marker is None or needed.marker.evaluate(_ENVIRONMENT)
                )
            ),
            imports=tuple(sorted(name for name in top if name.isidentifier())),
        )


@dataclass(frozen=True, slots=True)
class WheelFacts:
    """What a lock file records of a wheel; names are normalized as in PEP 503."""

    name: str
    version: str
    depends: tuple[str, ...]
    imports: tuple[str, ...]


def normalize(name: str) -> str:
    """Return a distribution name as PEP 503 compares it: ``bpk_lite`` is ``bpk-lite``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def build(project: Path) -> Wheel:
    """Build the wheel of the project in folder `project` with the tools of this environment.

    Raises:
        AssemblyError: If a tool is missing or the build fails; it ends with the build's last lines.
    """
    missing = [tool for tool in ("build", "hatchling") if importlib.util.find_spec(tool) is None]
    if missing:
        raise AssemblyError(
            f"cannot build the wheel of {project}: {' and '.join(missing)} not installed in "
            f"{sys.prefix}. Run: python -m pip install --group build"
        )
    with tempfile.TemporaryDirectory(prefix="bpk-wheel-") as folder:
        command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
        done = subprocess.run([*command, str(project)], capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise AssemblyError(f"the wheel of {project} could not be built:\n{last}")
        return Wheel(wheels[0].name, wheels[0].read_bytes())
