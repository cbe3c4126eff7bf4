"""Where bytes come from and go to. The core knows these protocols and no files.

A `ByteSource` answers ``read_at(offset, length)`` with a memoryview. Sources over memory and over
mappings return views of themselves, sources over plain reads return fresh bytes; nothing above can
tell the difference but by its cost.

Sources may have two more methods: ``view()`` returns all bytes, where they are in memory, and
``read_into(jobs)`` fills many buffers, where it pays to know all that is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bpk_lite.pack._errors import TensorClosedError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ByteSink", "ByteSource", "BytesSource", "read_into"]


_PIECE = 8 << 20  # what is read at once on the way to a larger buffer


@runtime_checkable
class ByteSource(Protocol):
    """Random access to a run of bytes that does not change."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    @property
    def name(self) -> str:
        """What error messages call it: a path, an address, or ``"<bytes>"``."""
        ...

    def read_at(self, offset: int, length: int) -> memoryview:
        """Return exactly `length` bytes from `offset`, as a read-only view of unsigned bytes.

        Raises:
            TruncatedError: fewer bytes are there.
            TensorClosedError: the source has been closed.
            ReadError: the system refused.
        """
        ...

    def close(self) -> None:
        """Release what the source holds. Views that were handed out stay valid."""
        ...


class ByteSink(Protocol):
    """Something to write a pack to, front to back: a file, a socket, a hash, a `BytesIO`."""

    def write(self, data: memoryview, /) -> Any:
        """Take all of `data`. It may not be kept: its memory is reused."""
        ...


def byte_view(buffer: Any) -> memoryview:
    """Return a read-only view of unsigned bytes over a contiguous buffer. No copy.

    Raises:
        TypeError: not a buffer, or not contiguous.
    """
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise TypeError("the buffer is not contiguous; make it so, or pass an array")
    if view.ndim != 1 or view.format != "B":
        # memoryview.cast refuses zeros in a shape, and there is nothing to see there anyway
        view = view.cast("B") if view.nbytes else memoryview(b"")
    return view.toreadonly()


class BytesSource:
    """A source over memory: bytes, bytearray, memoryview, mmap, array, numpy, JavaScript buffer.

    The buffer is kept and never copied (C84).
    """

    __slots__ = ("_view", "name")

    def __init__(self, buffer: Any, name: str = "<bytes>") -> None:
        self._view: memoryview | None = byte_view(buffer)
        self.name = name

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._open().nbytes

    def read_at(self, offset: int, length: int) -> memoryview:
        """Return a view of `length` bytes from `offset`."""
        view = self._open()
        check_range(self, offset, length)
        return view[offset : offset + length]

    def view(self) -> memoryview:
        """Return a view of all bytes."""
        return self._open()

    def close(self) -> None:
        """Let go of the buffer."""
        self._view = None

    def __reduce__(self) -> Any:
        return BytesSource, (bytes(self._open()), self.name)

    def _open(self) -> memoryview:
        if self._view is None:
            raise TensorClosedError(f"{self.name} has been closed")
        return self._view


def read_into(source: ByteSource, jobs: Sequence[tuple[int, memoryview]]) -> None:
    """Fill each buffer with the bytes of `source` from its offset.

    Raises:
        TruncatedError, TensorClosedError, ReadError: as `ByteSource.read_at`.
    """
    at_once = getattr(source, "read_into", None)
    if at_once is not None:
        at_once(jobs)
        return
    for offset, buffer in jobs:
        for start in range(0, buffer.nbytes, _PIECE):
            piece = buffer[start : start + _PIECE]
            piece[:] = source.read_at(offset + start, piece.nbytes)


def check_range(source: ByteSource, offset: int, length: int) -> None:
    """Raise `TruncatedError` unless `source` has `length` bytes from `offset`."""
    if offset + length > source.size:
        raise TruncatedError(
            f"{source.name}: bytes {offset} to {offset + length} were asked for, "
            f"but it holds {source.size}"
        )
