"""Packs behind an address: ``https://``, ``s3://``, ``gs://``, ``hf://`` and whatever fsspec knows.

What is wanted: the metadata of a pack of any size in one request, two if they are long; then of the
data only what is asked for, neighbours in one request, several requests at once; never a whole file
because a server ignores ranges; and never bytes of two versions of a file in one answer.

The first request asks for 128 KiB, which hold the metadata of about 1 500 tensors, and are kept.
fsspec does the rest: its file systems know protocols and credentials. For http its session is used
directly, since the answer's headers say what `info` would ask again: the size, whether the server
knows ranges, and the version.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from bpk_lite.desktop._atomic import ScratchFile
from bpk_lite.pack import DependencyError, LimitError, ReadError, TensorClosedError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpk_lite.pack import Limits

__all__ = ["RemoteSource", "open_remote"]

_HEAD = 128 << 10
_GAP = 64 << 10  # bytes between two ranges that are cheaper to read than to ask for apart
_LARGEST = 16 << 20  # bytes of one request
_AT_ONCE = 8
_BLOCK = 1 << 20  # bytes that a cache keeps in one file
_PARTIAL, _WHOLE, _PAST_END = 206, 200, 416

Range = tuple[int, int]


class _Fetch(Protocol):
    """How ranges of one file are got.

    Attributes:
        size: bytes of the file, known once `first` has returned.
        stamp: what tells this version of the file from others, or None.
    """

    size: int
    stamp: str | None

    def first(self, length: int) -> bytes:
        """Return the first bytes of the file, `length` or all."""
        ...

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        """Return the bytes of each range."""
        ...


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
        fetch = _fetch(address, None if cache is None else os.fspath(cache), options)
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

    def __init__(self, name: str, fetch: _Fetch, head: bytes, how: tuple[Any, ...]) -> None:
        self._fetch: _Fetch | None = fetch
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


def _fetch(address: str, cache: str | None, options: dict[str, Any]) -> _Fetch:
    if sys.platform == "emscripten" and address.startswith(("http://", "https://")):
        from bpk_lite.desktop._browser import BrowserFetch

        return BrowserFetch(address, options.get("headers", {}))
    import fsspec

    system, path = fsspec.url_to_fs(address, **options)
    kinds = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    fetch: _Fetch = _Http(system, path) if "https" in kinds else _Fsspec(system, path)
    return fetch if cache is None else _Cached(fetch, cache, address)


class _Fsspec:
    """Any file system of fsspec: the size by `info`, ranges by `cat_ranges`."""

    def __init__(self, system: Any, path: str) -> None:
        self._system = system
        self._path = path
        self.size = 0
        self.stamp: str | None = None

    def first(self, length: int) -> bytes:
        info = self._system.info(self._path)
        size = info.get("size")
        if size is None:
            raise ReadError(f"{self._path}: its size is not known")
        self.size = int(size)
        version = info.get("ETag") or info.get("etag") or info.get("LastModified")
        self.stamp = None if version is None else str(version)
        return bytes(self._system.cat_file(self._path, start=0, end=min(length, self.size)))

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        found = self._system.cat_ranges(
            [self._path] * len(wanted),
            [start for start, _ in wanted],
            [stop for _, stop in wanted],
            on_error="raise",
        )
        return list(found)


class _Cached:
    """Another way of getting ranges, with a folder of blocks that were got before.

    The head of the file is asked for each time, since it tells the version. A block is a file, made
    under another name first, so several processes may share the folder.
    """

    def __init__(self, fetch: _Fetch, folder: str, address: str) -> None:
        self._fetch = fetch
        self._folder = Path(folder)
        self._address = address
        self.size = 0
        self.stamp: str | None = None

    def first(self, length: int) -> bytes:
        head = self._fetch.first(length)
        self.size, self.stamp = self._fetch.size, self._fetch.stamp
        version = f"{self._address}\0{self.stamp}\0{self.size}".encode()
        self._folder /= hashlib.sha256(version).hexdigest()
        return head

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        if self.stamp is None:
            return self._fetch.ranges(wanted)  # nothing would tell an old block from a new one
        numbers = {
            number
            for start, stop in wanted
            for number in range(start // _BLOCK, -(-stop // _BLOCK))
        }
        blocks = {number: self._kept(number) for number in sorted(numbers)}
        missing = [number for number, data in blocks.items() if data is None]
        spans = [(n * _BLOCK, min(self.size, (n + 1) * _BLOCK)) for n in missing]
        for number, data in zip(missing, self._fetch.ranges(spans) if spans else (), strict=True):
            blocks[number] = data
            self._keep(number, data)
        return [self._cut(blocks, start, stop) for start, stop in wanted]

    def _kept(self, number: int) -> bytes | None:
        try:
            return (self._folder / str(number)).read_bytes()
        except OSError:
            return None

    def _keep(self, number: int, data: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with ScratchFile(self._folder / str(number)) as scratch:
            scratch.write(data)
            scratch.commit(durable=False)

    def _cut(self, blocks: Mapping[int, bytes | None], start: int, stop: int) -> bytes:
        first = start // _BLOCK
        joined = b"".join(blocks[n] or b"" for n in range(first, -(-stop // _BLOCK)))
        return joined[start - first * _BLOCK : stop - first * _BLOCK]


class _Http:
    """A web server: ranges by requests of our own in fsspec's session."""

    def __init__(self, system: Any, address: str) -> None:
        self._system = system
        self._address = address
        self.size = 0
        self.stamp: str | None = None

    def first(self, length: int) -> bytes:
        return self._run([(0, length)])[0]

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        return self._run(wanted)

    def _run(self, wanted: Sequence[Range]) -> list[bytes]:
        from fsspec.asyn import sync

        return list(sync(self._system.loop, self._get_all, wanted) or ())

    async def _get_all(self, wanted: Sequence[Range]) -> list[bytes]:
        import asyncio

        return list(await asyncio.gather(*(self._get(*one) for one in wanted)))

    async def _get(self, start: int, stop: int) -> bytes:
        keywords = dict(self._system.kwargs)
        asked = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        headers = {**keywords.pop("headers", {}), **asked}
        session = await self._system.set_session()
        address = self._system.encode_url(self._address)
        async with session.get(address, headers=headers, **keywords) as answer:
            status, told = answer.status, answer.headers
            length = int(told.get("Content-Length", -1))
            if status == _PAST_END and start == 0:
                return b""  # an empty file has no first byte
            if status == _WHOLE and not (start == 0 and 0 <= length <= stop):
                raise ReadError(
                    f"the server gives the whole file ({max(length, 0) or 'some'} bytes) when a "
                    "part is asked for; download it and open the copy"
                )
            if status not in (_PARTIAL, _WHOLE):
                raise ReadError(f"the server answered {status} {answer.reason}")
            if told.get("Content-Encoding", "identity") not in ("identity", ""):
                raise ReadError(f"the server compresses ranges ({told['Content-Encoding']})")
            size = length
            if status == _PARTIAL:
                place, _, total = told.get("Content-Range", "").rpartition("/")
                if not total.isdigit() or place.split("-")[0] != f"bytes {start}":
                    raise ReadError(
                        f"the server gave a range without its place: "
                        f"{told.get('Content-Range')!r}, expected bytes {start}-…/size"
                    )
                size = int(total)
            self._same_file(size, told.get("ETag") or told.get("Last-Modified"))
            return bytes(await answer.read())

    def _same_file(self, size: int, version: str | None) -> None:
        if not self.size:
            self.size, self.stamp = size, version
        elif (size, version) != (self.size, self.stamp):
            raise ReadError(
                f"it was changed while it was open: it had {self.size} bytes, version "
                f"{self.stamp}, and has {size}, version {version}; open it again"
            )
