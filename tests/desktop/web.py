"""A web server that knows ranges, counts what it gives, and misbehaves when it is told to."""

from __future__ import annotations

import contextlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TYPES = {".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm"}


class Server(ThreadingHTTPServer):
    """Serves a folder.

    Attributes:
        address: of the folder, with a slash.
        requests: method, path and range of each request.
        sent: bytes of bodies.
        fault: what to do wrong, by name; see the handler.
        allowed: origin whose pages may read, beside the server's own.
    """

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = Path(folder)
        self.address = f"http://127.0.0.1:{self.server_address[1]}/"
        self.fault = self.allowed = None
        self.forget()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), OSError):  # a client that went away is no news
            super().handle_error(request, client_address)

    def forget(self):
        self.requests, self.sent = [], 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each small answer waits 40 ms

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, *, body):
        server, asked = self.server, self.headers.get("Range")
        server.requests.append((self.command, self.path, asked))
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.replace("/moved/", "/", 1))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path = server.folder / self.path.lstrip("/").partition("?")[0]
        if not path.is_file():
            self.send_error(404)
            return
        size = path.stat().st_size
        start, stop = 0, size
        if asked is not None and server.fault != "ignores ranges":
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(size, int(last) + 1)
            if start >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            shown = start + 1 if server.fault == "wrong place" else start
            if server.fault != "no place":
                self.send_header("Content-Range", f"bytes {shown}-{stop - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Type", TYPES.get(path.suffix, "application/octet-stream"))
        if server.allowed is not None:
            self.send_header("Access-Control-Allow-Origin", server.allowed)
        if server.fault == "compresses":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        length = stop - start
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if not body:
            return
        if server.fault == "hangs up":
            length //= 2
            self.close_connection = True
        with path.open("rb") as file, contextlib.suppress(ConnectionError):
            file.seek(start)
            while length:
                piece = file.read(min(length, 1 << 16))
                server.sent += len(piece)  # before the client can look
                self.wfile.write(piece)
                length -= len(piece)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(folder):
    """Yield a running server."""
    server = Server(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
