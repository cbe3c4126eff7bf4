"""Sources over files: a mapping, or plain reads where mapping is impossible.

Both hold on to the file they opened, so a file that is replaced under them, as every atomic save
does, goes on giving its old bytes (C84 is where Burn does not). A file that is *truncated* under
them is a `TruncatedError` with reads; with a mapping the system kills the process (SIGBUS), which
no program can turn into an error. Choose ``backend="read"`` where others truncate your files.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import threading
from typing import TYPE_CHECKING, Literal

from bpk_lite.desktop._paths import AnyPath, reading_path
from bpk_lite.pack import LimitError, ReadError, TensorClosedError, TruncatedError

if TYPE_CHECKING:
    from pathlib import Path

    from bpk_lite.pack import Limits

__all__ = ["FileSource", "MmapSource", "open_source"]

_log = logging.getLogger("bpk_lite")

Backend = Literal["auto", "mmap", "read"]
Identity = tuple[int, int]


def open_source(
    path: AnyPath, *, limits: Limits, backend: Backend = "auto", exact: bool = False
) -> MmapSource | FileSource:
    """Open a file for reading, by the extension rule of C85 unless `exact`.

    Raises:
        ReadError: the file cannot be opened, or not mapped where ``"mmap"`` was asked for.
        LimitError: it is larger than ``limits.file_bytes``.
    """
    if backend not in ("auto", "mmap", "read"):
        raise ValueError(f"backend is 'auto', 'mmap' or 'read', not {backend!r}")
    found = reading_path(path, exact=exact)
    try:
        descriptor = os.open(found, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _read_error(found, error) from error
    source = FileSource(descriptor, found)
    try:
        if source.size > limits.file_bytes:
            raise LimitError(
                f"{found}: {source.size} bytes; the limit is {limits.file_bytes} for a file"
            )
        if backend == "read" or source.size == 0:
            return source
        try:
            mapped = MmapSource(source)
        except (OSError, ValueError) as error:
            if backend == "mmap":
                raise _read_error(found, error) from error
            _log.info("%s cannot be mapped (%s); reading it instead", found, error)
            return source
    except BaseException:
        source.close()
        raise
    source.close()
    return mapped


class MmapSource:
    """A source over a read-only mapping: every read is a view, no copy.

    The file itself is closed at once; the mapping keeps its content alive.
    """

    __slots__ = ("_map", "identity", "name", "size")

    def __init__(self, source: FileSource) -> None:
        self._map: mmap.mmap | None = mmap.mmap(
            source.fileno(), source.size, access=mmap.ACCESS_READ
        )
        self.name = source.name
        self.size = source.size
        self.identity = source.identity

    def read_at(self, offset: int, length: int) -> memoryview:
        """Return a view of `length` bytes from `offset`."""
        if self._map is None:
            raise TensorClosedError(f"{self.name} has been closed")
        _check_range(self.name, self.size, offset, length)
        return memoryview(self._map)[offset : offset + length]

    def close(self) -> None:
        """Unmap, or leave that to the last view if there are any: they stay valid."""
        mapped, self._map = self._map, None
        if mapped is not None:
            try:
                mapped.close()
            except BufferError:
                _log.debug("%s stays mapped until the last array over it is gone", self.name)


class FileSource:
    """A source over an open file: every read is a system call and fresh bytes.

    Thread-safe: reads carry their own offset, or take a lock where the system has no ``pread``.
    """

    __slots__ = ("_descriptor", "_lock", "identity", "name", "size")

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor: int | None = descriptor
        self._lock = threading.Lock()
        self.name = str(path)
        status = os.fstat(descriptor)
        self.size = status.st_size
        self.identity: Identity = (status.st_dev, status.st_ino)

    def fileno(self) -> int:
        """Return the open descriptor. Raises TensorClosedError."""
        if self._descriptor is None:
            raise TensorClosedError(f"{self.name} has been closed")
        return self._descriptor

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read `length` bytes from `offset` into fresh memory."""
        descriptor = self.fileno()
        _check_range(self.name, self.size, offset, length)
        buffer = bytearray(length)
        view = memoryview(buffer)
        done = 0
        while done < length:
            try:
                count = self._read_into(descriptor, view[done:], offset + done)
            except OSError as error:
                raise _read_error(self.name, error) from error
            if count == 0:
                raise TruncatedError(
                    f"{self.name} shrank while it was open: it had {self.size} bytes and now ends "
                    f"at {offset + done}"
                )
            done += count
        return view.toreadonly()

    def _read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(descriptor, [view], offset)
        with self._lock:
            os.lseek(descriptor, offset, os.SEEK_SET)
            data = os.read(descriptor, view.nbytes)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file; may be called again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def _check_range(name: str, size: int, offset: int, length: int) -> None:
    if offset + length > size:
        raise TruncatedError(
            f"{name}: bytes {offset} to {offset + length} were asked for, but it holds {size}"
        )


def _read_error(path: object, error: Exception) -> ReadError:
    if isinstance(error, OSError) and error.errno == errno.EISDIR:
        return ReadError(f"cannot read {path}: it is a directory, expected a .bpk file")
    reason = getattr(error, "strerror", None) or str(error)
    return ReadError(f"cannot read {path}: {reason}")
