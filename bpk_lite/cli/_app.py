"""The commands that look. Each opens a pack, asks `bpk_lite.inspect`, and prints.

Exit status: 0 fine, 1 findings (`verify`), 2 the file or the command line is at fault.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

import bpk_lite
from bpk_lite.cli._weights import register
from bpk_lite.pack import BpkError, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["app"]

app = typer.Typer(
    name="bpk",
    help="Look into Burn's checkpoints (.bpk), and bring weights in and out.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[str, typer.Argument(metavar="FILE", help="A .bpk file, or - for standard input.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bpk {bpk_lite.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Look into Burn's checkpoints (.bpk), and bring weights in and out."""


@app.command()
def inspect(
    file: File,
    as_json: AsJson = False,
    as_tree: Annotated[
        bool, typer.Option("--tree", help="Group the tensors by their dotted paths.")
    ] = False,
) -> None:
    """Show what a pack holds: header, metadata, scalars, tensors. Reads no tensor data."""
    from bpk_lite.inspect import summarize

    with _opened(file) as pack:
        summary = summarize(pack)
    if as_json:
        typer.echo(json.dumps(summary.to_dict(), indent=2))
        return
    from bpk_lite.cli._show import show_summary

    show_summary(summary, as_tree=as_tree)


@app.command()
def verify(file: File, as_json: AsJson = False) -> None:
    """Report what is odd about a pack that opens. Exit status 1 if there is anything."""
    from bpk_lite.inspect import verify as find

    with _opened(file) as pack:
        findings = find(pack)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        from bpk_lite.cli._show import show_findings

        show_findings(file, findings)
    if findings:
        raise typer.Exit(1)


register(app)


@contextlib.contextmanager
def _opened(file: str) -> Iterator[Reader]:
    """Open a pack; turn errors about it into one line on stderr and status 2."""
    try:
        if file == "-":
            pack = Reader.from_bytes(sys.stdin.buffer.read(), name="<stdin>")
        else:
            pack = Reader.from_file(file)
        with pack:
            yield pack
    except BpkError as error:
        typer.echo(f"bpk: {error}", err=True)
        raise typer.Exit(2) from error
