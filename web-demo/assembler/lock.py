"""``runtime.lock.json`` as values: which files, their sha256, and where each may come from.

The sha256 is the only thing trusted. A source is a carrier: several may have the same bytes, and a
carrier that gives other bytes counts as one that failed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assembler import AssemblyError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["NpmSource", "PypiSource", "RuntimeFile", "RuntimeLock", "Source", "UrlSource", "read"]


@dataclass(frozen=True, slots=True)
class UrlSource:
    """The file itself, at an address."""

    url: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class NpmSource:
    """A member of a package on npm, for example ``python_stdlib.zip`` of ``pyodide@314.0.3``."""

    package: str
    member: str

    def __str__(self) -> str:
        return f"npm package {self.package}"


@dataclass(frozen=True, slots=True)
class PypiSource:
    """A wheel on PyPI, or one member of it when `member` is given.

    `python`, `platform` and `abi` pick the wheel, whichever Python runs the assembler.
    """

    requirement: str
    python: str
    platform: str | None = None
    abi: str | None = None
    member: str | None = None

    def __str__(self) -> str:
        return f"PyPI package {self.requirement}"


Source = UrlSource | NpmSource | PypiSource


@dataclass(frozen=True, slots=True)
class RuntimeFile:
    """One file of the runtime: its name, its sha256, its sources in order of preference.

    `leave_out` holds patterns (`fnmatch`) of the members of a wheel that the page does not need,
    such as headers and type stubs.
    """

    name: str
    sha256: str
    sources: tuple[Source, ...]
    leave_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise AssemblyError(f"runtime.lock.json: {self.name} has no valid sha256")
        if not self.sources:
            raise AssemblyError(f"runtime.lock.json: {self.name} has no source")


@dataclass(frozen=True, slots=True)
class RuntimeLock:
    """All of ``runtime.lock.json``.

    Attributes:
        pyodide: its version.
        core: Pyodide itself.
        packages: wheels that the pages need.
        notebooks: pure wheels that the notebooks need beside these.
        fonts: typefaces and their licences.
        test: wheels for the tests inside Pyodide.
        browser: scripts for the tests in Chromium; no page loads them.
    """

    pyodide: str
    core: tuple[RuntimeFile, ...]
    packages: tuple[RuntimeFile, ...]
    notebooks: tuple[RuntimeFile, ...]
    fonts: tuple[RuntimeFile, ...]
    test: tuple[RuntimeFile, ...]
    browser: tuple[RuntimeFile, ...]


def read(path: Path) -> RuntimeLock:
    """Read and check ``runtime.lock.json``.

    Raises:
        AssemblyError: If it is missing, is no JSON, or an entry is incomplete.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return RuntimeLock(
            pyodide=document["pyodide"],
            core=_files(document["core"]),
            packages=_files(document["packages"]),
            notebooks=_files(document["notebooks"]),
            fonts=_files(document["fonts"]),
            test=_files(document["test"]),
            browser=_files(document["browser"]),
        )
    except OSError as error:
        raise AssemblyError(f"cannot read {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise AssemblyError(f"{path} is not JSON: {error}") from error
    except (KeyError, TypeError) as error:
        raise AssemblyError(f"{path}: missing or misplaced field: {error}") from error


def _files(entries: Mapping[str, Mapping[str, Any]]) -> tuple[RuntimeFile, ...]:
    return tuple(
        RuntimeFile(
            name=name,
            sha256=entry["sha256"],
            sources=tuple(_source(name, source) for source in entry["sources"]),
            leave_out=tuple(entry.get("leave_out", ())),
        )
        for name, entry in entries.items()
    )


def _source(name: str, entry: Mapping[str, str]) -> Source:
    fields = {key: value for key, value in entry.items() if key != "kind"}
    match entry["kind"]:
        case "url":
            return UrlSource(**fields)
        case "npm":
            return NpmSource(**fields)
        case "pypi":
            return PypiSource(**fields)
        case kind:
            raise AssemblyError(f"runtime.lock.json: {name} has a source of unknown kind {kind!r}")
