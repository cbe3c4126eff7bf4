"""A source as a stream, for the standard library's readers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpk_lite.pack import ByteSource

__all__ = ["SourceStream"]


class SourceStream(io.RawIOBase):
    """Reads a `ByteSource` from front to back, or wherever it is sent."""

    def __init__(self, source: ByteSource, start: int = 0) -> None:
        super().__init__()
        self._source = source
        self._position = start

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be sent elsewhere."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}[whence]
        if base + offset < 0:
            raise ValueError(f"position {base + offset} lies before the beginning")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with what follows; return how much there was."""
        view = memoryview(buffer).cast("B")
        count = max(0, min(view.nbytes, self._source.size - self._position))
        view[:count] = self._source.read_at(self._position, count)
        self._position += count
        return count
