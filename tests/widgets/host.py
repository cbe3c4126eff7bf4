"""A host of widgets in small: a kernel's thread on one side, Chromium on the other, no Jupyter.

The widget is a real anywidget and speaks the real protocol of Jupyter's comms. Its kernel is a
thread with an event loop, as in ipykernel. Messages go through a local HTTP server, buffers as raw
bytes, so that what is measured is the widget.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import queue
import threading
from functools import partial
from pathlib import Path
from typing import Any, Final

import comm
from comm.base_comm import BaseComm

__all__ = ["Host", "Kernel"]

_PAGES: Final = Path(__file__).with_name("host")
_TYPES: Final = {".html": "text/html; charset=utf-8", ".mjs": "text/javascript; charset=utf-8"}
# Blobs are how anywidget loads a module, in any host.
POLICY: Final = (
    "default-src 'none'; script-src 'self' blob:; style-src 'unsafe-inline'; connect-src 'self'; "
    "worker-src {workers}; img-src 'none'"
)


class Kernel:
    """A thread with an event loop, which owns the widgets."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="kernel", daemon=True)
        self._thread.start()

    def run(self, function: Any, *args: Any, **keywords: Any) -> Any:
        """Run a function in the kernel's thread, as a cell would, and return what it does."""

        async def call() -> Any:
            return function(*args, **keywords)

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(timeout=120)

    def stop(self) -> None:
        """End the thread, with what is left on its loop."""

        async def cancel() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel(), self.loop).result(timeout=30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Host:
    """Shows the widgets that a kernel makes in pages at `address`, one widget for each page."""

    def __init__(self) -> None:
        self.kernel = Kernel()
        self.workers = "blob:"  # what the pages' policy says of workers
        self._comms: dict[str, _Comm] = {}
        self._create_comm = comm.create_comm
        comm.create_comm = self._open
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def show(self, page: Any, make: Any, *args: Any, **keywords: Any) -> Any:
        """Make a widget in the kernel, show it in a page, and return it."""
        widget = self.kernel.run(make, *args, **keywords)
        page.goto(f"{self.address}host.html?comm={widget.comm.comm_id}")
        page.wait_for_selector(".bpk-inspector:not([data-state=loading])", timeout=30_000)
        return widget

    def close(self) -> None:
        """Stop everything."""
        comm.create_comm = self._create_comm
        for one in self._comms.values():
            one.outgoing.put(None)
        self.kernel.stop()
        self._server.shutdown()
        self._server.server_close()

    def _open(self, *args: Any, **keywords: Any) -> _Comm:
        made = _Comm(*args, **keywords)
        self._comms[made.comm_id] = made
        return made

    def incoming(self, comm_id: str, data: Any) -> None:
        """Take a message of the page to the widget, in the kernel's thread."""
        message = {"content": {"data": data}, "buffers": [], "header": {"msg_type": "comm_msg"}}
        one = self._comms[comm_id]
        self.kernel.loop.call_soon_threadsafe(one.handle_msg, message)

    def outgoing(self, comm_id: str) -> bytes | None:
        """Return the next message to the page: length, JSON, buffers. Waits for one."""
        item = self._comms[comm_id].outgoing.get()
        if item is None:
            return None
        message, buffers = item
        blobs = [bytes(memoryview(buffer).cast("B")) for buffer in buffers]
        head = json.dumps(message | {"sizes": [len(blob) for blob in blobs]}).encode()
        return b"".join([len(head).to_bytes(4, "little"), head, *blobs])


class _Comm(BaseComm):
    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.outgoing: queue.Queue[Any] = queue.Queue()
        super().__init__(*args, **keywords)

    def publish_msg(self, msg_type: str, data: Any = None, metadata: Any = None,
                    buffers: Any = None, **keys: Any) -> None:  # fmt: skip
        self.outgoing.put(({"type": msg_type, "data": data}, buffers or []))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, host: Host, *args: Any) -> None:
        self._host = host
        super().__init__(*args)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/next":
            body = self._host.outgoing(query)
            self._answer(204 if body is None else 200, "application/octet-stream", body or b"")
            return
        file = _PAGES / path.lstrip("/")
        if file.parent == _PAGES and file.is_file():
            self._answer(200, _TYPES[file.suffix], file.read_bytes())
        else:
            self._answer(404, "text/plain", b"")

    def do_POST(self) -> None:
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._host.incoming(self.path.partition("?")[2], data)
        self._answer(204, "text/plain", b"")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY.format(workers=self._host.workers))
        with contextlib.suppress(ConnectionError):  # the page has gone
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass
