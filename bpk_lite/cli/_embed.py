"""A pack inside something else: a Python package, as ``include_bytes!`` is for Rust, or a page.

Nothing of the file goes into code: the package's module is the same for all. The page is HTML that
`bpk_lite.inspect` makes, escaped; its policy forbids scripts and the network.
"""

from __future__ import annotations

import base64
import keyword
import os
from typing import TYPE_CHECKING

from bpk_lite.convert import Contents, convert
from bpk_lite.inspect import html, summarize
from bpk_lite.inspect._markup import Markup, tag
from bpk_lite.pack import WINDOW, AlreadyExists, Layout, LimitError, Part, Reader, WriteError
from bpk_lite.pack._format import human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["embed_html", "embed_package"]

_RESOURCE = "weights.bpk"
_MODULE = f'''"""Weights as package data, made by `bpk embed`."""

from bpk_lite import Reader

__all__ = ["load"]


def load() -> Reader:
    """Open the pack that is part of this package.

    It is a mapping from name to tensor; arrays taken from it are views, and nothing is copied.
    """
    return Reader.from_static(__name__, "{_RESOURCE}")
'''
_MARK = _MODULE.partition("\n")[0]
# browsers refuse longer addresses for data, and a page is no place for gigabytes
_LARGEST = 64 << 20
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font-family:system-ui,sans-serif;max-width:72rem;margin:1rem auto;padding:0 1rem}"
    "a{color:inherit}"
)


def embed_package(held: Reader | Contents, name: str, folder: str, *, overwrite: bool) -> list[str]:
    """Write a package of `name` into `folder`; return the paths of its two files.

    Raises:
        ValueError: `name` is no name that can be imported.
        AlreadyExists: the package exists and `overwrite` is False, or its module is not one that
            was made here, which is never replaced.
        WriteError: from the system.
    """
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        raise ValueError(f"--package: {name!r} is no name of a Python package")
    home = os.path.normpath(os.path.join(folder, name))
    module = os.path.join(home, "__init__.py")
    if os.path.lexists(home):
        if not overwrite:
            raise AlreadyExists(f"{home} exists already; --overwrite replaces it")
        if not _made_here(module):
            raise AlreadyExists(f"{module} was not made by `bpk embed`; it is not replaced")
    try:
        os.makedirs(home, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{home} cannot be made: {error}") from error
    pack = _pack(held).write_to_file(os.path.join(home, _RESOURCE), overwrite=overwrite)
    _Bytes(_MODULE.encode()).write_to_file(module, overwrite=overwrite, extension=False)
    return [pack, module]


def _made_here(module: str) -> bool:
    try:
        with open(module, encoding="utf-8") as file:
            return file.readline().rstrip("\n") == _MARK
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def embed_html(held: Reader | Contents, name: str, path: str, *, overwrite: bool) -> list[str]:
    """Write a page that shows what is there and has the pack in it; return its path.

    Raises:
        LimitError: the pack is larger than 64 MiB.
        AlreadyExists, WriteError: see `Layout.write_to_file`.
    """
    plan = _pack(held)
    if plan.size > _LARGEST:
        raise LimitError(
            f"{name}: a pack of {human_bytes(plan.size)} is too much for a page, which holds up to "
            f"{human_bytes(_LARGEST)}; --package takes any"
        )
    blob = plan.into_bytes()
    title = os.path.basename(name) if name != "-" else "pack"
    summary = summarize(Reader.from_bytes(blob, name=title))
    link = tag(
        "a",
        "Download the pack",
        href=f"data:application/octet-stream;base64,{base64.b64encode(blob).decode()}",
        download=os.path.splitext(title)[0] + ".bpk",
    )
    page = tag(
        "html",
        tag(
            "head",
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            tag("title", title),
            Markup(f"<style>{_STYLE}</style>"),
        ),
        tag(
            "body",
            tag(
                "main",
                tag("h1", tag("bdi", title)),
                tag("p", link, f" ({human_bytes(len(blob))})"),
                Markup(html(summary)),
            ),
        ),
        lang="en",
    )
    made = _Bytes(f"<!doctype html>\n{page}\n".encode())
    return [made.write_to_file(path, overwrite=overwrite, extension=False)]


def _pack(held: Reader | Contents) -> Layout:
    return _Copy(held) if isinstance(held, Reader) else convert(held, "burnpack").plan


class _Copy(Layout):
    """The file of an open pack as it is."""

    __slots__ = ("_pack", "size", "tensors")

    def __init__(self, pack: Reader) -> None:
        self._pack = pack
        self.size = pack.nbytes
        self.tensors = ()

    def parts(self) -> Iterator[Part]:
        """Yield the bytes in order."""
        for offset in range(0, self.size, WINDOW):
            yield Part(self._pack.source.read_at(offset, min(WINDOW, self.size - offset)))


class _Bytes(Layout):
    """Bytes at hand."""

    __slots__ = ("_blob", "size", "tensors")

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self.size = len(blob)
        self.tensors = ()

    def parts(self) -> Iterator[Part]:
        """Yield the bytes."""
        yield Part(memoryview(self._blob))
