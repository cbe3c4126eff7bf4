"""The bytes of a layout into an open file.

What is wanted: few system calls for many small tensors, no copy of what is in memory, the next
window made while the last is written, never more than two windows in memory, and a disk that works
from the first window on, so that the sync at the end has little left to wait for.

So parts are gathered into batches of a window, each written by one ``writev``. A batch refers to
what is in memory. What a provider gives may be overwritten by its next window, so it is copied into
the one staging buffer there is, and a second thread writes that while the provider goes on: one
window is in the staging buffer, one in the provider's hands. A piece larger than a window is not
copied but written at once, before the provider is asked for more.

Without providers, checksums or a digest there is nothing to wait for, and all is written by the
calling thread, as it is where threads do not exist (Pyodide).
"""

from __future__ import annotations

import contextlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from bpk_lite.desktop._atomic import write_error
from bpk_lite.pack import WINDOW, Part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from bpk_lite.pack import Layout, Progress

__all__ = ["write_layout"]

_MANY = 512  # buffers in one system call; the least that systems promise is 16, Linux takes 1024
_EARLY = 2 * WINDOW  # bytes after which the disk is told to begin
_WRITEV = getattr(os, "writev", None)


def write_layout(
    layout: Layout,
    descriptor: int,
    path: Path,
    *,
    early: bool = False,
    progress: Progress | None = None,
    digest: Any = None,
) -> None:
    """Write all of `layout` to an open file, from its current position.

    Args:
        layout: what to write.
        descriptor: the file.
        path: what errors call it.
        early: ask the disk to begin with what is written at once.
        progress: see `bpk_lite.pack.Progress`; called in this thread.
        digest: an object whose ``update`` gets all bytes.

    Raises:
        WriteError: from the system.
        ProviderError: from a deferred tensor.
    """
    file = _File(descriptor, path, early)
    overlaps = layout.computes or digest is not None or any(t.is_deferred for t in layout.tensors)
    threaded = overlaps and layout.size > WINDOW and sys.platform != "emscripten"
    disk = (_SecondThread if threaded else _Disk)(file)
    try:
        gather = _Gather(disk)
        done = 0
        for part in layout.parts():
            large = part.buffer.nbytes > WINDOW
            for window in _windows(part):
                if digest is not None:
                    digest.update(window.buffer)
                gather.add(window)
                done += window.buffer.nbytes
                if progress is not None and window.tensor is not None:
                    progress(window.tensor, done, layout.size)
                del window
            if large and part.fleeting:
                gather.finish()
            del part  # what was written is released before the next is made
        gather.finish()
    finally:
        disk.close()


def _windows(part: Part) -> Iterator[Part]:
    """Cut what is larger than a window, so that progress moves and a cancel is soon obeyed."""
    size = part.buffer.nbytes
    if size <= WINDOW:
        yield part
        return
    for start in range(0, size, WINDOW):
        yield Part(part.buffer[start : start + WINDOW], part.tensor)


class _Gather:
    """Joins parts into batches of about a window for the disk."""

    def __init__(self, disk: _Disk) -> None:
        self._disk = disk
        self._batch: list[memoryview] = []
        self._size = 0
        self._staging: memoryview | None = None
        self._used = 0

    def add(self, part: Part) -> None:
        """Take a part of at most a window."""
        size = part.buffer.nbytes
        if self._size + size > WINDOW or len(self._batch) >= _MANY:
            self.flush()
        self._batch.append(self._copy(part.buffer) if part.fleeting else part.buffer)
        self._size += size
        if self._size >= WINDOW:
            self.flush()  # now, not with the next part: else three windows would be held

    def _copy(self, buffer: memoryview) -> memoryview:
        if self._staging is None:
            self._staging = memoryview(bytearray(WINDOW))
        if not self._used:
            self._disk.wait()  # it may still write what the staging buffer held
        place = self._staging[self._used : self._used + buffer.nbytes]
        place[:] = buffer
        self._used += buffer.nbytes
        return place

    def flush(self) -> None:
        """Hand the batch to the disk."""
        if self._batch:
            self._disk.write(self._batch)
            self._batch, self._size, self._used = [], 0, 0

    def finish(self) -> None:
        """Return when all is written."""
        self.flush()
        self._disk.wait()


class _File:
    """Writes to a descriptor, however little the system takes at once."""

    def __init__(self, descriptor: int, path: Path, early: bool) -> None:
        self._descriptor = descriptor
        self._path = path
        self._early = early and hasattr(os, "posix_fadvise")
        self._position = self._begun = 0

    def write(self, batch: list[memoryview]) -> None:
        """Write all of the batch and empty it: what is written is let go. Raises WriteError."""
        pending = batch[::-1]
        batch.clear()  # a second thread holds it for a moment after its work is done
        while pending:
            try:
                if _WRITEV is None:
                    count = os.write(self._descriptor, pending[-1])
                else:
                    count = _WRITEV(self._descriptor, pending[::-1])
            except OSError as error:
                raise write_error(self._path, error) from error
            self._position += count
            while pending and count >= pending[-1].nbytes:
                count -= pending.pop().nbytes
            if count:
                pending[-1] = pending[-1][count:]
        if self._early and self._position - self._begun >= _EARLY:
            # a hint: what is on its way stays cached, and the sync at the end is what counts
            with contextlib.suppress(OSError):
                os.posix_fadvise(
                    self._descriptor,
                    self._begun,
                    self._position - self._begun,
                    os.POSIX_FADV_DONTNEED,
                )
            self._begun = self._position


class _Disk:
    """Writes batches in the calling thread."""

    def __init__(self, file: _File) -> None:
        self._file = file

    def write(self, batch: list[memoryview]) -> None:
        """Write a batch, or begin to."""
        self._file.write(batch)

    def wait(self) -> None:
        """Return when all that was given is written. Raises what went wrong."""

    def close(self) -> None:
        """End the work, finished or not."""


class _SecondThread(_Disk):
    """Writes one batch while the next is gathered."""

    def __init__(self, file: _File) -> None:
        super().__init__(file)
        self._thread = ThreadPoolExecutor(1, "bpk_lite writer")
        self._written: Future[None] | None = None

    def write(self, batch: list[memoryview]) -> None:
        self.wait()
        self._written = self._thread.submit(self._file.write, batch)

    def wait(self) -> None:
        if self._written is not None:
            self._written.result()

    def close(self) -> None:
        self._thread.shutdown()
