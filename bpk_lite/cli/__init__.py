"""The command `bpk` (extra ``cli``). stdout is data, stderr is talk."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; say what to install if the extra is missing."""
    try:
        from bpk_lite.cli._app import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit("the command bpk needs the cli extra: pip install 'bpk-lite[cli]'")
    app()
