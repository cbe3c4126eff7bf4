"""The inspector page's end in Python: a session whose front end is on the other side of a worker.

The page's worker gives objects that read a local file or an address (``source.mjs``). Small reads
are synchronous there; large ones are asynchronous streams into one reused buffer, which is what
keeps a pass over gigabytes from filling the memory with garbage. Where the browser can suspend
WebAssembly (JSPI) those look synchronous from here, and messages come in meanwhile; elsewhere the
synchronous way serves for both.

Pyodide's modules are imported where they are used, so that this module can be looked at anywhere.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import TYPE_CHECKING, Any, Final

from bpk_lite.convert import convert, open_contents
from bpk_lite.pack import LimitError, Reader, ReadError
from bpk_lite.pack._source import check_range
from bpk_lite_widgets._session import Session
from bpk_lite_widgets._subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bpk_lite.convert import Contents
    from bpk_lite.pack import Layout, Tensor

__all__ = ["Page", "PageSource"]

_STREAMED: Final = 256 << 10  # bytes from which a read is streamed
_PIECE: Final = 16 << 20  # bytes of one synchronous read
_COPIED: Final = 1 << 30  # bytes that a conversion may make anew, in the browser's memory


class PageSource:
    """Bytes of a file or an address, by an object of the page's worker.

    Args:
        source: has ``size``, ``name``, ``read(start, end)`` and ``fill(target, start, end)``.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self.size = int(source.size)
        self.name = str(source.name)

    def read_at(self, offset: int, length: int) -> memoryview:
        """Return fresh bytes.

        Raises:
            TruncatedError: fewer are there.
            ReadError: the file changed or went away, or the server failed.
        """
        ffi = importlib.import_module("pyodide.ffi")
        check_range(self, offset, length)
        target = bytearray(length)
        try:
            if length > _STREAMED and ffi.can_run_sync():
                ffi.run_sync(self._source.fill(target, offset, offset + length))
            else:
                view = memoryview(target)
                for start in range(0, length, _PIECE):
                    end = min(start + _PIECE, length)
                    piece = self._source.read(offset + start, offset + end)
                    piece.assign_to(view[start:end])
        except ffi.JsException as error:
            raise ReadError(self._explained(error)) from None
        return memoryview(target).toreadonly()

    def close(self) -> None:
        """Nothing is held."""

    def _explained(self, error: Any) -> str:
        name = getattr(error, "name", "")
        if name == "NotReadableError":
            return (
                f"{self.name} has changed since it was chosen, or can no longer be read; "
                "choose it again"
            )
        if name == "NotFoundError":
            return f"{self.name} is no longer there; choose it again"
        return f"{self.name}: {getattr(error, 'message', error)}"


class Page:
    """One page: what is open in it, and its session.

    Args:
        post: takes a message as JSON and its buffers, to the page.
    """

    def __init__(self, post: Callable[[str, Any], None]) -> None:
        self._post = post
        self._session: Session | None = None

    def open(self, source: Any, other: Any = None) -> None:
        """Open a file or an address, perhaps to compare it with another one.

        What was open before is closed when this succeeds, and stays open otherwise.

        Raises:
            BpkError: it cannot be read, is of no known format, or is broken.
        """
        subject = Subject.of(PageSource(source))
        try:
            beside = None if other is None else Subject.of(PageSource(other))
        except BaseException:
            subject.close()
            raise
        self.close()
        self._session = Session(subject, self._send, beside)

    def close(self) -> None:
        """Stop all work and let go of what is open."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def receive(self, text: str) -> None:
        """Take a message of the drawing modules, as JSON."""
        if self._session is not None:
            self._session.receive(json.loads(text))

    async def convert(self, to: str, piece: Callable[[Any], Any]) -> str:
        """Lay out what is open as another format and hand its bytes over in order.

        Bytes that are in the file unchanged are handed over as ``[start, end]``, for the page to
        take from the file without reading them; what is new as a buffer.

        Args:
            to: ``"burnpack"`` or ``"safetensors"``.
            piece: takes the next bytes.

        Returns:
            What could not be taken over, as a JSON list of sentences.

        Raises:
            BpkError, StoreError: the format cannot hold it; a tensor cannot be read.
            LimitError: more than 1 GiB would have to be made.
        """
        assert self._session is not None
        subject = self._session.subject
        made = convert(_contents(subject), to)  # type: ignore[arg-type]  # the page has two buttons
        whole = {id(tensor): _range(tensor) for tensor in made.plan.tensors}
        anew = sum(tensor.nbytes for tensor in made.plan.tensors if whole[id(tensor)] is None)
        if anew > _COPIED:
            raise LimitError(
                f"{anew >> 20} MiB would have to be made in the browser's memory, which takes "
                f"up to {_COPIED >> 20} MiB; use `bpk convert` in a terminal"
            )
        position = 0
        for part in _in_order(made.plan):
            await asyncio.sleep(0)
            if isinstance(part, tuple):
                piece(_js_array(part))
                position += part[1] - part[0]
            else:
                piece(_js_bytes(part))
                position += part.nbytes
        if position != made.plan.size:
            raise AssertionError(f"handed over {position} bytes of {made.plan.size}")
        return json.dumps(list(made.notes))

    def _send(self, message: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        self._post(json.dumps(message), _js_array([_js_bytes(buffer) for buffer in buffers]))


def _contents(subject: Subject) -> Contents:
    content = subject.content
    if isinstance(content, Reader):
        return open_contents(content.source)
    return content


def _range(tensor: Tensor) -> tuple[int, int] | None:
    """Return where a tensor's bytes lie in the file, if they do, and can be sliced."""
    source, start = tensor.source, tensor.source_offset
    if start is None or not isinstance(source, PageSource) or not source._source.sliceable:
        return None
    return start, start + tensor.nbytes


def _in_order(plan: Layout) -> Any:
    """Yield the bytes of a plan: ranges of the file where they are in it, buffers elsewhere."""
    from bpk_lite.pack._header import aligned

    header: Any = plan.header  # type: ignore[attr-defined]  # both formats have one
    yield memoryview(header)
    padded = hasattr(plan, "entries")
    position = 0
    for tensor in plan.tensors:
        start = aligned(position) if padded else position
        if start > position:
            yield memoryview(bytes(start - position))
        place = _range(tensor)
        if place is None:
            yield from tensor.pieces()
        elif place[1] > place[0]:
            yield place
        position = start + tensor.nbytes


def _js_bytes(buffer: Any) -> Any:
    """Return a copy of a buffer as a JavaScript ArrayBuffer, which can be given away."""
    javascript: Any = importlib.import_module("js")
    view = memoryview(buffer).cast("B") if memoryview(buffer).nbytes else memoryview(b"")
    made = javascript.Uint8Array.new(view.nbytes)
    if view.nbytes:
        made.assign(view)
    return made.buffer


def _js_array(items: Sequence[Any]) -> Any:
    return importlib.import_module("pyodide.ffi").to_js(list(items))
