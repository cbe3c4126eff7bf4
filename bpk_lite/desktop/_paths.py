"""The extension rules: reading prefers what exists, writing always names a .bpk (C85, C103)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from bpk_lite.pack import WriteError

__all__ = ["AnyPath", "beside", "reading_path", "writing_path"]

AnyPath: TypeAlias = "str | os.PathLike[str]"

EXTENSION = ".bpk"


def has_extension(name: str) -> bool:
    """Whether the final component has an extension, an empty one included (C103).

    A leading dot does not count: ``.hidden`` has none. ``model.`` has an empty one, which pathlib
    before Python 3.14 denies, so the name is tested by hand.
    """
    return "." in name[1:]


def reading_path(path: AnyPath, *, exact: bool = False) -> Path:
    """Return the file that `path` means for reading (C85, C124)."""
    given = Path(path)
    if exact or has_extension(given.name) or os.path.lexists(given):
        return given
    return given.with_name(given.name + EXTENSION) if given.name else given


def writing_path(path: AnyPath, *, extension: bool = True) -> Path:
    """Return the file that `path` means for writing (C103, C117).

    Raises:
        WriteError: the path has no final component (C115).
    """
    text = os.fspath(path)
    if "://" in text:
        raise WriteError(f"{text!r} is an address; save a file and put it there")
    name = os.path.basename(text)
    if name in {"", ".", ".."}:
        raise WriteError(f"{text!r} is not a file path: it has no final component")
    if extension and not has_extension(name):
        text += EXTENSION
    return Path(text)


def beside(path: AnyPath, name: str) -> Path:
    """Return the path of another file in the same folder."""
    return Path(path).with_name(name)
