"""A server of files that answers ranges, or does not, or forbids other pages: as a query says.

``?whole`` answers 200 with everything, ``?cors`` lets other origins read, ``?expose`` also shows them
Content-Range, ``?to=ADDRESS`` redirects, ``?gone`` answers 404 to all but the first request.
"""

from __future__ import annotations

import contextlib
import re
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Ranges", "ranges"]


class Ranges:
    """A running server: its address, and the bytes that it has sent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self.sent = 0
        self.requests: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, ranges: Ranges, *args: Any) -> None:
        self._ranges = ranges
        super().__init__(*args)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = parse_qs(address.query, keep_blank_values=True)
        self._ranges.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}")
        headers = {}
        if "cors" in query or "expose" in query:
            headers["Access-Control-Allow-Origin"] = "*"
        if "expose" in query:
            headers["Access-Control-Expose-Headers"] = "Content-Range"
        if "to" in query:
            self._answer(302, headers | {"Location": query["to"][0]}, 0)
            return
        path = self._ranges.folder / address.path.lstrip("/")
        repeated = sum(f" {self.path} " in line for line in self._ranges.requests) > 1
        if not path.is_file() or ("gone" in query and repeated):
            self._answer(404, headers, 0)
            return
        size = path.stat().st_size
        start, end, status = 0, size, 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted and "whole" not in query:
            start, end = int(wanted[1]), min(size, int(wanted[2] or size) + 1)
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
            status = 206
        self._answer(status, headers, end - start)
        if self.command == "GET":
            with path.open("rb") as file, contextlib.suppress(OSError):
                file.seek(start)
                while start < end:
                    block = file.read(min(1 << 20, end - start))
                    self.wfile.write(block)
                    start += len(block)
                    self._ranges.sent += len(block)

    def _answer(self, status: int, headers: dict[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def ranges(folder: Path) -> Iterator[Ranges]:
    """Serve the files of a folder while the block runs."""
    running = Ranges(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, running))
    server.daemon_threads = True
    running.address = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
