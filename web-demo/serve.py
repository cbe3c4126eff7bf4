"""Serve the assembled site on this machine: ``python web-demo/serve.py [--port N]``.

A plain static server: the right types for modules and WebAssembly, the headers of the site's own
``_headers`` file as a static host would send them, nothing kept by the browser without asking.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import sys
import threading
from fnmatch import fnmatchcase
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["main", "serving"]

_Rule: TypeAlias = tuple[str, str, str]
"""A pattern of paths, and a header for them: its name and value."""

_HOST: Final = "127.0.0.1"
_DEFAULT_PORT: Final = 8000
_SITE: Final = Path(__file__).resolve().parent / "_site"


class _Handler(SimpleHTTPRequestHandler):
    """Serve `directory` with the headers that `rules` have for a path added to each answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each small answer waits 40 ms for the client's next packet
    extensions_map: dict[str, str] = SimpleHTTPRequestHandler.extensions_map | {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".mjs": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".webmanifest": "application/manifest+json",
        ".whl": "application/octet-stream",
    }

    def __init__(self, *args: Any, directory: str, rules: tuple[_Rule, ...], quiet: bool) -> None:
        self._rules = rules
        self._quiet = quiet
        super().__init__(*args, directory=directory)

    def end_headers(self) -> None:
        path = urlsplit(self.path).path
        for pattern, name, value in self._rules:
            if fnmatchcase(path, pattern):
                self.send_header(name, value)
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """Refuse: a static host shows no folder listings either."""
        self.send_error(HTTPStatus.NOT_FOUND, f"No index page in {self.path}")

    def log_message(self, format: str, *args: Any) -> None:
        if not self._quiet:
            super().log_message(format, *args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about a browser that went away in the middle of a file."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serving(directory: Path, port: int = 0, *, quiet: bool = True) -> Iterator[str]:
    """Serve `directory` from a thread while the block runs, and give the site's address.

    Port 0 is any free port; so is a `port` that is taken. Only this machine can connect.
    """
    handler = partial(_Handler, directory=str(directory), rules=_rules(directory), quiet=quiet)
    server = _listen(handler, port)
    thread = threading.Thread(target=server.serve_forever, name="web-demo", daemon=True)
    thread.start()
    try:
        yield f"http://{_HOST}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _listen(handler: Any, port: int) -> _Server:
    try:
        return _Server((_HOST, port), handler)
    except OSError as error:
        if port == 0 or error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        return _Server((_HOST, 0), handler)


def _rules(directory: Path) -> tuple[_Rule, ...]:
    """Read the site's ``_headers`` file.

    It is in the form that static hosts read: indented ``Name: value`` lines under a path, in which
    ``*`` is any run of characters.
    """
    rules: list[_Rule] = [("*", "Cache-Control", "no-cache")]
    pattern = "*"
    with contextlib.suppress(FileNotFoundError):
        for line in (directory / "_headers").read_text(encoding="utf-8").splitlines():
            if line.startswith("  ") and ":" in line:
                name, _, value = line.strip().partition(":")
                rules.append((pattern, name, value.strip()))
            elif line.startswith("/"):
                pattern = line.strip()
    return tuple(rules)


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted and return the exit status."""
    parser = argparse.ArgumentParser(prog="serve.py", description="Serve the assembled web demo.")
    parser.add_argument("--port", type=int, default=_DEFAULT_PORT, help="0: any free one")
    parser.add_argument("--dir", type=Path, default=_SITE, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if not (options.dir / "index.html").is_file():
        print(
            f"web demo: there is no site in {options.dir}. Run first: python web-demo/assemble.py",
            file=sys.stderr,
        )
        return 1
    with serving(options.dir, options.port, quiet=False) as address:
        if options.port and not address.endswith(f":{options.port}/"):
            print(f"Port {options.port} is taken; using another.")
        print(f"\n  The demo is at {address}  (Ctrl+C stops it)\n", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
