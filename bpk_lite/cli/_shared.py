"""What all commands share: how files are opened, how faults end, what is said and where.

stdout is data, stderr is talk. Text that comes from files reaches neither unescaped.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpk_lite.convert import Contents
    from bpk_lite.pack import Progress, Reader

__all__ = ["AsJson", "File", "Overwrite", "bar", "faults", "opened", "pack_of", "print_json", "say"]

File: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A file or an address; its content says what it is. - is standard input.",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Overwrite: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace what is there already.")
]


@contextlib.contextmanager
def faults() -> Iterator[None]:
    """Turn errors about files and arguments into one line on stderr and status 2."""
    try:
        yield
    except Exception as error:
        from bpk_lite.pack import BpkError

        if isinstance(error, BrokenPipeError) or not isinstance(
            error, BpkError | ValueError | OSError
        ):
            raise
        say(f"bpk: {error}".replace("pass overwrite=True to replace it", "--overwrite replaces it"))
        raise typer.Exit(2) from error


@contextlib.contextmanager
def pack_of(file: str) -> Iterator[Reader]:
    """Open a pack: a path, or - for standard input."""
    import bpk_lite

    if file == "-":
        found = bpk_lite.Reader.from_bytes(sys.stdin.buffer.read(), name="<stdin>")
    else:
        found = bpk_lite.open(file)
    with found:
        yield found


@contextlib.contextmanager
def opened(file: str) -> Iterator[Reader | Contents]:
    """Open a file of weights of any known format; a pack as a `Reader`."""
    import bpk_lite
    from bpk_lite.convert import open_contents

    given: Any = file
    name = file
    if file == "-":
        given, name = sys.stdin.buffer.read(), "<stdin>"
    found: Reader | Contents
    try:
        found = bpk_lite.open(file) if file != "-" else bpk_lite.Reader.from_bytes(given, name=name)
    except bpk_lite.InvalidMagicNumber:
        found = open_contents(given)
    with found:
        yield found


def print_json(value: Any) -> None:
    """Print a value as strict JSON, in ASCII: no control character of a name gets through."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def say(text: str) -> None:
    """Write a line to stderr; what a terminal would act on is escaped."""
    from bpk_lite.pack._format import safe_text

    sys.stderr.write("\n".join(map(safe_text, text.splitlines())) + "\n")


@contextlib.contextmanager
def bar(what: str) -> Iterator[Progress | None]:
    """Show a bar on stderr if that is a terminal; gives what long work takes as ``progress``."""
    if not sys.stderr.isatty():
        yield None
        return
    from bpk_lite.desktop.progress import rich_progress

    with rich_progress(what) as progress:
        yield progress
