"""Where a tensor's bytes are: in memory, in a window of a source, or still to be made.

All three answer the same two questions: a range of the bytes, and all of them in pieces. A piece is
valid until the next one is asked for, so whoever writes holds one piece at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from bpk_lite.pack._source import byte_view

if TYPE_CHECKING:
    from bpk_lite.pack._source import ByteSource

__all__ = ["WINDOW", "Data", "Deferred", "Part", "Provider", "Resident", "Window", "array_bytes"]

WINDOW = 8 << 20
"""Bytes that are read and written at once (C99)."""

Provider: TypeAlias = Callable[[], Any]
"""Called without arguments; returns a buffer or array, or an iterator of them."""


class Part(NamedTuple):
    """The next bytes of a file.

    Attributes:
        buffer: the bytes.
        tensor: name of the tensor that they are of, or None for a header or padding.
        fleeting: whether their memory may be used again when the next part is asked for. Whoever
            needs them longer copies them.
    """

    buffer: memoryview
    tensor: str | None = None
    fleeting: bool = False


class Data(Protocol):
    """The bytes of one tensor."""

    def read(self, offset: int, length: int) -> memoryview:
        """Return a read-only view of a range. No copy where the bytes are in memory."""
        ...

    def pieces(self) -> Iterator[memoryview]:
        """Yield all bytes in order, in read-only views of at most a window where possible."""
        ...


class Resident:
    """Bytes in hand: a buffer, or an array of any stride and byte order, kept by reference."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def read(self, offset: int, length: int) -> memoryview:
        return array_bytes(self._held)[offset : offset + length]

    def pieces(self) -> Iterator[memoryview]:
        if isinstance(self._held, np.ndarray) and not self._held.flags.c_contiguous:
            return map(array_bytes, _blocks(self._held))  # copies, but a window at a time
        return iter((array_bytes(self._held),))


class Window:
    """A range of a source."""

    __slots__ = ("length", "offset", "source")

    def __init__(self, source: ByteSource, offset: int, length: int) -> None:
        self.source = source
        self.offset = offset
        self.length = length

    def read(self, offset: int, length: int) -> memoryview:
        return self.source.read_at(self.offset + offset, length)

    def pieces(self) -> Iterator[memoryview]:
        for offset in range(0, self.length, WINDOW):
            yield self.read(offset, min(WINDOW, self.length - offset))


class Deferred:
    """Bytes that a provider makes, anew at each request; nothing is cached (C98)."""

    __slots__ = ("_provider",)

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def read(self, offset: int, length: int) -> memoryview:
        return self.whole(offset + length)[offset : offset + length]

    def whole(self, expected: int) -> memoryview:
        """Return all bytes; a surplus beyond `expected` is not gathered further than its piece."""
        made = self._provider()
        if _is_piece(made):
            return array_bytes(made)
        joined = bytearray()  # pieces may share memory, so each is copied before the next is made
        for piece in _pieces(made):
            joined += piece
            if len(joined) > expected:
                break
        return memoryview(joined).toreadonly()

    def pieces(self) -> Iterator[memoryview]:
        made = self._provider()
        yield from _pieces((made,) if _is_piece(made) else made)


def _blocks(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield views of at most a window that make up `array` in row-major order."""
    if array.nbytes <= WINDOW:
        yield array
        return
    row = array.nbytes // len(array)
    if row > WINDOW:
        for each in array:
            yield from _blocks(each)
        return
    step = WINDOW // row
    for start in range(0, len(array), step):
        yield array[start : start + step]


def _pieces(made: Any) -> Iterator[memoryview]:
    if not isinstance(made, Iterable):
        raise TypeError(
            f"a provider returns a buffer, an array or an iterator of them, "
            f"not {type(made).__name__}"
        )
    return map(array_bytes, made)


def _is_piece(made: Any) -> bool:
    if hasattr(made, "__array__") or hasattr(made, "__dlpack__"):
        return True
    try:
        memoryview(made)
    except TypeError:
        return False
    return True


def array_bytes(held: Any) -> memoryview:
    """Return the bytes of a buffer or array as they stand in a file: row-major, little-endian.

    Copies only what is strided or big-endian. Goes by a byte view, never by a buffer of the dtype,
    because bfloat16 has none.
    """
    if not isinstance(held, np.ndarray):
        if not hasattr(held, "__array__"):
            return byte_view(held)
        held = np.asarray(held)
    if held.dtype.byteorder == ">" or (held.dtype.byteorder == "=" and sys.byteorder == "big"):
        held = held.astype(held.dtype.newbyteorder("<"))
    return byte_view(np.ascontiguousarray(held).reshape(-1).view(np.uint8))
