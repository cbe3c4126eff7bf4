"""A zip of stored entries as a file that is laid out but not written.

`zipfile` does the format, on a sink that can only grow, so entries are streamed and their checksums
follow them. Data begin at multiples of 64, as PyTorch has them.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpk_lite.pack import Layout, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bpk_lite.pack import Tensor

__all__ = ["ZipEntry", "ZipPlan"]

_ALIGNMENT = 64
_LOCAL_HEADER = 30
_ZIP64_EXTRA = 20
_EXTRA_HEADER = 4


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file in the archive: its name, its first bytes, and the tensor whose bytes follow."""

    name: str
    front: bytes = b""
    tensor: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Its size."""
        return len(self.front) + (0 if self.tensor is None else self.tensor.nbytes)

    def parts(self) -> Iterator[Part]:
        """Yield its bytes."""
        yield Part(memoryview(self.front))
        if self.tensor is not None:
            yield from self.tensor.parts()


class ZipPlan(Layout):
    """A zip, laid out but not written.

    Attributes:
        size: bytes in all.
        tensors: the tensors in it.
        entries: the files in it, in order.
    """

    __slots__ = ("entries", "size", "tensors")

    computes = True  # a checksum of every entry

    def __init__(self, entries: Iterable[ZipEntry], tensors: Iterable[Tensor]) -> None:
        self.entries = tuple(entries)
        self.tensors = tuple(tensors)
        measured = _Sink()
        for _ in self._written(measured, with_data=False):
            pass
        self.size = measured.position

    def parts(self) -> Iterator[Part]:
        """Yield the bytes in order; see `Layout.parts`.

        Raises:
            ProviderError: a deferred tensor's provider failed; names the tensor.
        """
        sink = _Sink()
        for tensor, fleeting in self._written(sink, with_data=True):
            yield from (Part(view, tensor, fleeting) for view in sink.drain())
        yield from map(Part, sink.drain())

    def _written(self, sink: _Sink, with_data: bool) -> Iterator[tuple[str | None, bool]]:
        """Write to a sink, or only the headers and where they lie; yield whose bytes wait there."""
        import zipfile

        limit = zipfile.ZIP64_LIMIT
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
            for entry in self.entries:
                info = zipfile.ZipInfo(entry.name)  # its time stays 1980: equal input, equal bytes
                big = entry.nbytes > limit
                front = _LOCAL_HEADER + len(entry.name.encode()) + _ZIP64_EXTRA * big
                gap = -(sink.position + front + _EXTRA_HEADER) % _ALIGNMENT
                info.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
                with archive.open(info, "w", force_zip64=big) as out:
                    yield None, False
                    if with_data:
                        for buffer, tensor, fleeting in entry.parts():
                            out.write(buffer)
                            del buffer  # a window must not outlive its turn
                            yield tensor, fleeting
                    else:
                        sink.position += entry.nbytes
                if not with_data:
                    info.file_size = info.compress_size = entry.nbytes


class _Sink(io.RawIOBase):
    """Keeps what is written until it is fetched. Cannot seek, so that nothing is patched."""

    def __init__(self) -> None:
        super().__init__()
        self.position = 0
        self._waiting: list[memoryview] = []

    def write(self, data: Any) -> int:
        """Take bytes."""
        view = memoryview(data)
        self._waiting.append(view)
        self.position += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Return the position."""
        return self.position

    def drain(self) -> Iterator[memoryview]:
        """Yield what waits."""
        while self._waiting:
            yield self._waiting.pop(0)
