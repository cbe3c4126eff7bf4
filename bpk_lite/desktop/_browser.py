"""Ranges of an address inside a browser, by its own ``fetch``.

Python runs there without sockets, and ``fetch`` answers later. Where the browser can suspend Python
(JavaScript Promise Integration, and code that runs by ``runPythonAsync``, as notebooks do), this
waits for it like for any other call. A synchronous ``XMLHttpRequest`` would work everywhere in a
worker, but cannot be ended: a server that answers a range with a file of 2 GiB ends the tab.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpk_lite.pack import ReadError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BrowserFetch"]

_PARTIAL, _WHOLE, _PAST_END = 206, 200, 416


class BrowserFetch:
    """Ranges by ``fetch``. See `bpk_lite.desktop._ranges.Fetch` for what the names mean."""

    def __init__(self, address: str, headers: dict[str, str]) -> None:
        self._address = address
        self._headers = headers
        self.size = 0
        self.stamp: str | None = None

    def first(self, length: int) -> bytes:
        """Return the first bytes, and learn size and version."""
        return self._run([(0, length)])[0]

    def ranges(self, wanted: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range."""
        return self._run(wanted)

    def _run(self, wanted: Sequence[tuple[int, int]]) -> list[bytes]:
        import asyncio

        from pyodide.ffi import (  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]
            can_run_sync,
            run_sync,
        )

        if not can_run_sync():
            raise ReadError(
                "Python cannot wait for the browser here: run it by runPythonAsync in one that has "
                "JavaScript Promise Integration, or fetch the bytes and open those"
            )

        async def all_of() -> list[bytes]:
            return list(await asyncio.gather(*(self._get(*one) for one in wanted)))

        found: list[bytes] = run_sync(all_of())
        return found

    async def _get(self, start: int, stop: int) -> bytes:
        import js  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]
        from pyodide.ffi import JsException, to_js  # pyright: ignore[reportMissingImports]

        cancel = js.AbortController.new()
        options: dict[str, Any] = {
            "headers": {**self._headers, "Range": f"bytes={start}-{stop - 1}"},
            "signal": cancel.signal,
            "cache": "no-store",
        }
        try:
            answer = await js.fetch(
                self._address, to_js(options, dict_converter=js.Object.fromEntries)
            )
        except JsException as error:
            raise ReadError(
                f"{error.message}: the server cannot be reached, or does not allow this page (CORS)"
            ) from error
        length = int(_header(answer, "Content-Length") or -1)
        if answer.status == _PAST_END and start == 0:
            return b""
        if answer.status == _WHOLE and not (start == 0 and 0 <= length <= stop):
            cancel.abort()
            raise ReadError(
                "the server gives the whole file when a part is asked for; download it and open "
                "the copy"
            )
        if answer.status not in (_PARTIAL, _WHOLE):
            raise ReadError(f"the server answered {answer.status} {answer.statusText}")
        size = length
        if answer.status == _PARTIAL:
            size = await self._size(_header(answer, "Content-Range"))
        version = _header(answer, "ETag") or _header(answer, "Last-Modified")
        if not self.size:
            self.size, self.stamp = size, version
        elif (size, version) != (self.size, self.stamp):
            raise ReadError("it was changed while it was open; open it again")
        data: bytes = (await answer.arrayBuffer()).to_bytes()
        return data

    async def _size(self, place: str | None) -> int:
        """Return the size of the file; another site may hide ``Content-Range``, then ask for it."""
        import js  # pyright: ignore[reportMissingImports]

        if place is not None:
            return int(place.rpartition("/")[2])
        if self.size:
            return self.size
        answer = await js.fetch(self._address, method="HEAD", cache="no-store")
        length = _header(answer, "Content-Length")
        if length is None:
            raise ReadError("the server does not tell the size of the file")
        return int(length)


def _header(answer: Any, name: str) -> str | None:
    """Return a header; JavaScript's null, which is no None, is falsy too."""
    return answer.headers.get(name) or None
