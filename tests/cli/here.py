"""The command in this process: the same application without the start of an interpreter."""

from __future__ import annotations

from typer.testing import CliRunner

from bpk_lite.cli._app import app

RUNNER = CliRunner()


def run(*args, stdin=b""):
    """Run the command; return status, stdout and stderr, as a process would give them."""
    found = RUNNER.invoke(app, [str(arg) for arg in args], input=stdin, prog_name="bpk")
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.stdout, found.stderr
