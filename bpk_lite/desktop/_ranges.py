"""How ranges of one file behind an address are got: by http, by fsspec, by a cache of blocks.

fsspec's file systems know protocols and credentials. For http its session is used directly, since
the answer's headers say what `info` would ask again: the size, whether the server knows ranges, and
the version.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from bpk_lite.desktop._atomic import ScratchFile
from bpk_lite.pack import ReadError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Fetch", "Range", "fetch_of"]

_BLOCK = 1 << 20  # bytes that a cache keeps in one file
_PARTIAL, _WHOLE, _PAST_END = 206, 200, 416

Range: TypeAlias = tuple[int, int]


class Fetch(Protocol):
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


def fetch_of(address: str, cache: str | None, options: dict[str, Any]) -> Fetch:
    """Return the way to get ranges of `address`.

    Raises:
        ImportError: fsspec, or what it needs for this scheme, is not installed.
        ValueError: fsspec does not know the scheme.
    """
    if sys.platform == "emscripten" and address.startswith(("http://", "https://")):
        from bpk_lite.desktop._browser import BrowserFetch

        return BrowserFetch(address, options.get("headers", {}))
    import fsspec

    system, path = fsspec.url_to_fs(address, **options)
    kinds = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    fetch: Fetch = _Http(system, path) if "https" in kinds else _Fsspec(system, path)
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

    def __init__(self, fetch: Fetch, folder: str, address: str) -> None:
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
