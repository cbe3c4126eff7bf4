"""Packs behind an address: ``https://``, ``s3://``, ``gs://``, ``hf://`` and whatever fsspec knows.

What is wanted: the metadata of a pack of any size in one request, two if they are long; then of the
data only what is asked for, neighbours in one request, several requests at once; never a whole file
because a server ignores ranges; and never bytes of two versions of a file in one answer.

The first request asks for 128 KiB, which hold the metadata of about 1 500 tensors, and are kept.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from bpk_lite.desktop._ranges import fetch_of
from bpk_lite.pack import DependencyError, LimitError, ReadError, TensorClosedError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpk_lite.desktop._ranges import Fetch, Range
    from bpk_lite.pack import Limits

__all__ = ["RemoteSource", "open_remote"]

_HEAD = 128 << 10
_GAP = 64 << 10  # bytes between two ranges that are cheaper to read than to ask for apart
_LARGEST = 16 << 20  # bytes of one request
_AT_ONCE = 8


def open_remote(
    address: str,
    *,
    limits: Limits,
    cache: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> RemoteSource:
    """Open a file behind an address for reading by ranges.

    Args:
        address: ``scheme://…``, anything that fsspec knows.
        limits: ``limits.file_bytes`` is what to accept.
        cache: a folder in which blocks that were read are kept for the next time.
        storage_options: for fsspec's file system: credentials, headers, endpoints.

    Raises:
        DependencyError: fsspec, or what it needs for this scheme, is not installed.
        ReadError: it cannot be read, or only as a whole.
        LimitError: it is larger than ``limits.file_bytes``.
    """
    options = dict(storage_options or {})
    name = public_name(address)
    try:
        fetch = fetch_of(address, None if cache is None else os.fspath(cache), options)
    except ImportError as error:
        raise DependencyError(
            f"{name}: {error}; addresses need pip install 'bpk-lite[remote]', and some a package "
            "of their own, such as s3fs or huggingface_hub"
        ) from error
    except ValueError as error:
        raise ReadError(f"{name}: {error}") from error
    with _Told(name):
        head = fetch.first(_HEAD)
    if fetch.size > limits.file_bytes:
        raise LimitError(f"{name}: {fetch.size} bytes; the limit is {limits.file_bytes} for a file")
    return RemoteSource(name, fetch, head, (address, cache, options))


def public_name(address: str) -> str:
    """Return an address without what may be secret: query, fragment, user and password."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class RemoteSource:
    """A source over a file behind an address.

    Every read is a request and fresh bytes, but for the first 128 KiB, which are kept.

    Attributes:
        name: the address, without query and credentials.
        size: bytes of the file.
        stamp: the size and version, which a pickled source must find again.
    """

    __slots__ = ("_fetch", "_head", "_how", "name", "size", "stamp")

    def __init__(self, name: str, fetch: Fetch, head: bytes, how: tuple[Any, ...]) -> None:
        self._fetch: Fetch | None = fetch
        self._head = head
        self._how = how
        self.name = name
        self.size = fetch.size
        self.stamp = (fetch.size, fetch.stamp)

    def read_at(self, offset: int, length: int) -> memoryview:
        """Return `length` bytes from `offset`: those that are not at hand by one request."""
        stop = offset + length
        self._check(offset, stop)
        kept = self._head[offset:stop]
        if len(kept) == length:
            return memoryview(kept)
        (rest,) = self._ranges([(offset + len(kept), stop)])
        return memoryview(kept + rest if kept else rest)

    def read_into(self, jobs: Sequence[tuple[int, memoryview]]) -> None:
        """Fill each buffer with the bytes from its offset. Neighbours share a request."""
        pending: list[tuple[int, memoryview]] = []
        for offset, buffer in jobs:
            stop = offset + buffer.nbytes
            self._check(offset, stop)
            if stop <= len(self._head):
                buffer[:] = self._head[offset:stop]
                continue
            pending += [
                (offset + start, buffer[start : start + _LARGEST])
                for start in range(0, buffer.nbytes, _LARGEST)
            ]
        pending.sort(key=lambda job: job[0])
        groups = _coalesced(pending)
        for first in range(0, len(groups), _AT_ONCE):
            portion = groups[first : first + _AT_ONCE]
            found = self._ranges([span for span, _ in portion])
            for ((start, _), members), data in zip(portion, found, strict=True):
                for offset, buffer in members:
                    buffer[:] = data[offset - start : offset - start + buffer.nbytes]

    def close(self) -> None:
        """Let go of it; connections belong to fsspec, which shares them."""
        self._fetch = None

    def _check(self, offset: int, stop: int) -> None:
        if self._fetch is None:
            raise TensorClosedError(f"{self.name} has been closed")
        if stop > self.size:
            raise TruncatedError(
                f"{self.name}: bytes {offset} to {stop} were asked for, but it holds {self.size}"
            )

    def _ranges(self, wanted: list[Range]) -> list[bytes]:
        fetch = self._fetch
        if fetch is None:
            raise TensorClosedError(f"{self.name} has been closed")
        with _Told(self.name):
            found = fetch.ranges(wanted)
        for (start, stop), data in zip(wanted, found, strict=True):
            if len(data) != stop - start:
                raise TruncatedError(
                    f"{self.name}: bytes {start} to {stop} were asked for, "
                    f"the server gave {len(data)}"
                )
        return found

    def __reduce__(self) -> Any:
        return _reopen, (*self._how, self.stamp)


def _reopen(address: str, cache: Any, options: dict[str, Any], stamp: Any) -> RemoteSource:
    from bpk_lite.pack import Limits

    source = open_remote(
        address, limits=Limits(file_bytes=1 << 62), cache=cache, storage_options=options
    )
    if source.stamp != stamp:
        raise ReadError(f"{source.name} was changed since it was pickled")
    return source


def _coalesced(
    jobs: list[tuple[int, memoryview]],
) -> list[tuple[Range, list[tuple[int, memoryview]]]]:
    """Group jobs, in order of their offsets, into ranges that are worth one request each."""
    groups: list[tuple[Range, list[tuple[int, memoryview]]]] = []
    for offset, buffer in jobs:
        stop = offset + buffer.nbytes
        if groups:
            (start, end), members = groups[-1]
            if offset - end <= _GAP and max(end, stop) - start <= _LARGEST:
                groups[-1] = ((start, max(end, stop)), [*members, (offset, buffer)])
                continue
        groups.append(((offset, stop), [(offset, buffer)]))
    return groups


class _Told:
    """Turns what libraries raise into `ReadError`, with the name of the file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise ReadError(f"cannot read {self._name}: {reason or type(error).__name__}") from error
