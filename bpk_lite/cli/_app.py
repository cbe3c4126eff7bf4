"""The application: which commands there are, and what `bpk` itself answers.

Nothing but typer is imported before a command runs, so that ``bpk --help`` and completion answer at
once: what a command needs, numpy and rich among it, is imported in its body. For the same reason
help is set by typer's plain formatter.
"""

from __future__ import annotations

from typing import Annotated

import typer

from bpk_lite._version import __version__
from bpk_lite.cli import _look, _take, _weights

__all__ = ["app"]

_HELP = "Look into Burn's checkpoints (.bpk), and bring weights in and out."

app = typer.Typer(
    name="bpk",
    help=_HELP,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bpk {__version__}")
        raise typer.Exit


@app.callback(help=_HELP)
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


_look.register(app)
_weights.register(app)
_take.register(app)
