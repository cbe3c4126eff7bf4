"""Sources over files: a mapping, or plain reads where mapping is impossible.

Both hold on to the file they opened, so a file that is replaced under them, as every atomic save
does, goes on giving its old bytes (C84 is where Burn does not). A file that is *truncated* under
them is a `TruncatedError` with reads; with a mapping the system kills the process (SIGBUS), which
no program can turn into an error. Choose ``backend="read"`` where others truncate your files.

Both may be used by several threads and after a fork: no read has a position, and a source that is
closed while another thread reads lets go of the file when that read is over. Both can be pickled:
what travels is the path, and the file is opened again, if it is still the same.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bpk_lite.desktop._paths import AnyPath, reading_path
from bpk_lite.pack import LimitError, ReadError, TensorClosedError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bpk_lite.desktop._remote import RemoteSource
    from bpk_lite.pack import Limits

__all__ = ["FileSource", "MmapSource", "open_source"]

_log = logging.getLogger("bpk_lite")

Backend = Literal["auto", "mmap", "read"]
Advice = Literal["normal", "sequential", "random", "willneed"]
Identity = tuple[int, int]
Stamp = tuple[int, int, int]
"""Inode, size and time of change: what tells a file from one that took its place."""

_CHUNK = 4 << 20  # bytes that a thread reads at once
_WORTH_THREADS = 32 << 20
_THREADS = 4


def open_source(
    path: AnyPath,
    *,
    limits: Limits,
    backend: Backend = "auto",
    exact: bool = False,
    advise: Advice | None = None,
    threads: int | None = None,
) -> MmapSource | FileSource | RemoteSource:
    """Open a file for reading, by the extension rule of C85 unless `exact`.

    Args:
        path: the file, or an address, for which only `limits` count.
        limits: ``limits.file_bytes`` is what to accept.
        backend: ``"mmap"``, ``"read"``, or ``"auto"``: map, and read where mapping fails, which is
            logged.
        exact: take the path exactly as given.
        advise: what the system may expect: ``"sequential"`` and ``"willneed"`` read ahead,
            ``"random"`` does not. A hint, without effect where the system has none.
        threads: how many read at once when much is copied; the default is up to 4.

    Raises:
        ReadError: the file cannot be opened, or not mapped where ``"mmap"`` was asked for.
        LimitError: it is larger than ``limits.file_bytes``.
    """
    if backend not in ("auto", "mmap", "read"):
        raise ValueError(f"backend is 'auto', 'mmap' or 'read', not {backend!r}")
    if advise not in (None, "normal", "sequential", "random", "willneed"):
        raise ValueError(
            f"advise is 'normal', 'sequential', 'random' or 'willneed', not {advise!r}"
        )
    if isinstance(path, str) and "://" in path:
        from bpk_lite.desktop._remote import open_remote

        return open_remote(path, limits=limits)
    found = reading_path(path, exact=exact)
    try:
        descriptor = os.open(found, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _read_error(found, error) from error
    source = FileSource(descriptor, found, threads=threads)
    try:
        if source.size > limits.file_bytes:
            raise LimitError(
                f"{found}: {source.size} bytes; the limit is {limits.file_bytes} for a file"
            )
        chosen: MmapSource | FileSource = source
        if backend != "read" and source.size:
            try:
                chosen = MmapSource(source)
            except (OSError, ValueError) as error:
                if backend == "mmap":
                    raise _read_error(found, error) from error
                _log.info("%s cannot be mapped (%s); reading it instead", found, error)
        if advise is not None:
            chosen.advise(advise)
    except BaseException:
        source.close()
        raise
    if chosen is not source:
        source.close()
    return chosen


def _reopen(path: str, backend: Backend, stamp: Stamp, threads: int | None) -> Any:
    """Open the file of a pickled source. Raises ReadError if it is another one by now."""
    from bpk_lite.pack import Limits

    source = open_source(
        path, limits=Limits(file_bytes=stamp[1]), backend=backend, exact=True, threads=threads
    )
    if source.stamp != stamp:
        source.close()
        raise ReadError(
            f"{path} was changed or replaced since it was pickled; what it held is not there now"
        )
    return source


class MmapSource:
    """A source over a read-only mapping: every read is a view, no copy.

    The file itself is closed at once; the mapping keeps its content alive.

    Attributes:
        name: the path.
        size: bytes of the file.
        identity: device and inode.
        stamp: see `Stamp`.
    """

    __slots__ = ("_map", "_threads", "identity", "name", "size", "stamp")

    def __init__(self, source: FileSource) -> None:
        self._map: mmap.mmap | None = mmap.mmap(
            source.fileno(), source.size, access=mmap.ACCESS_READ
        )
        self._threads = source.threads
        self.name = source.name
        self.size = source.size
        self.identity = source.identity
        self.stamp = source.stamp

    def view(self) -> memoryview:
        """Return a view of the whole file. Raises TensorClosedError."""
        mapped = self._map
        try:
            if mapped is not None:
                return memoryview(mapped)
        except ValueError:
            pass  # closed by another thread just now
        raise TensorClosedError(f"{self.name} has been closed")

    def read_at(self, offset: int, length: int) -> memoryview:
        """Return a view of `length` bytes from `offset`."""
        view = self.view()
        _check_range(self.name, self.size, offset, length)
        return view[offset : offset + length]

    def read_into(self, jobs: Sequence[tuple[int, memoryview]]) -> None:
        """Fill each buffer with the bytes from its offset, by several threads if there are many."""
        whole = np.frombuffer(self.view(), np.uint8)

        def copy(offset: int, buffer: memoryview) -> None:
            _check_range(self.name, self.size, offset, buffer.nbytes)
            np.copyto(np.frombuffer(buffer, np.uint8), whole[offset : offset + buffer.nbytes])

        _in_threads(copy, jobs, self._threads)

    def advise(self, advice: Advice) -> None:
        """Tell the system what to expect, where it has such a hint."""
        code = getattr(mmap, f"MADV_{advice.upper()}", None)
        if code is not None and self._map is not None:
            self._map.madvise(code)

    def close(self) -> None:
        """Unmap, or leave that to the last view if there are any: they stay valid."""
        mapped, self._map = self._map, None
        if mapped is not None:
            try:
                mapped.close()
            except BufferError:
                _log.debug("%s stays mapped until the last array over it is gone", self.name)

    def __reduce__(self) -> Any:
        self.view()
        return _reopen, (os.path.abspath(self.name), "auto", self.stamp, self._threads)


class FileSource:
    """A source over an open file: every read is a system call and fresh bytes.

    Attributes:
        name: the path.
        size: bytes of the file when it was opened.
        identity: device and inode.
        stamp: see `Stamp`.
        threads: how many read at once when much is copied; None for up to 4.
    """

    __slots__ = ("_held", "_lock", "identity", "name", "size", "stamp", "threads")

    def __init__(self, descriptor: int, path: Path, *, threads: int | None = None) -> None:
        self._held: _Descriptor | None = _Descriptor(descriptor)
        self._lock = threading.Lock()
        self.name = str(path)
        self.threads = threads
        status = os.fstat(descriptor)
        self.size = status.st_size
        self.identity: Identity = (status.st_dev, status.st_ino)
        self.stamp: Stamp = (status.st_ino, status.st_size, status.st_mtime_ns)

    def fileno(self) -> int:
        """Return the open descriptor. Raises TensorClosedError."""
        return self._file().number

    def _file(self) -> _Descriptor:
        held = self._held  # a reference of our own: it stays open while we read
        if held is None:
            raise TensorClosedError(f"{self.name} has been closed")
        return held

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read `length` bytes from `offset` into fresh memory."""
        file = self._file()
        _check_range(self.name, self.size, offset, length)
        view = memoryview(bytearray(length))
        self._fill(file, offset, view)
        return view.toreadonly()

    def read_into(self, jobs: Sequence[tuple[int, memoryview]]) -> None:
        """Fill each buffer with the bytes from its offset, by several threads if there are many."""
        file = self._file()

        def read(offset: int, buffer: memoryview) -> None:
            _check_range(self.name, self.size, offset, buffer.nbytes)
            self._fill(file, offset, buffer)

        _in_threads(read, jobs, self.threads)

    def _fill(self, file: _Descriptor, offset: int, view: memoryview) -> None:
        done = 0
        while done < view.nbytes:
            try:
                count = self._read(file.number, view[done:], offset + done)
            except OSError as error:
                raise _read_error(self.name, error) from error
            if count == 0:
                raise TruncatedError(
                    f"{self.name} shrank while it was open: it had {self.size} bytes and now ends "
                    f"at {offset + done}"
                )
            done += count

    def _read(self, descriptor: int, view: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(descriptor, [view], offset)
        with self._lock:
            os.lseek(descriptor, offset, os.SEEK_SET)
            data = os.read(descriptor, view.nbytes)
        view[: len(data)] = data
        return len(data)

    def advise(self, advice: Advice) -> None:
        """Tell the system what to expect, where it has such a hint."""
        code = getattr(os, f"POSIX_FADV_{advice.upper()}", None)
        if code is not None:
            os.posix_fadvise(self.fileno(), 0, 0, code)

    def close(self) -> None:
        """Let go of the file, which is closed when the reads of other threads are over."""
        self._held = None

    def __reduce__(self) -> Any:
        self.fileno()
        return _reopen, (os.path.abspath(self.name), "read", self.stamp, self.threads)


class _Descriptor:
    """An open file that is closed when nobody refers to it any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def _in_threads(
    work: Callable[[int, memoryview], None],
    jobs: Sequence[tuple[int, memoryview]],
    threads: int | None,
) -> None:
    """Do the jobs, large ones in chunks, by several threads where that pays."""
    total = sum(buffer.nbytes for _, buffer in jobs)
    if threads is None:
        threads = min(_THREADS, os.cpu_count() or 1) if total >= _WORTH_THREADS else 1
    if threads < 2 or sys.platform == "emscripten":
        for offset, buffer in jobs:
            work(offset, buffer)
        return
    chunks = [
        (offset + start, buffer[start : start + _CHUNK])
        for offset, buffer in jobs
        for start in range(0, buffer.nbytes, _CHUNK)
    ]
    with ThreadPoolExecutor(threads, "bpk_lite reader") as pool:
        for _ in pool.map(lambda job: work(*job), chunks):
            pass  # raises what a thread raised


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
