"""Everything that can be done with a file that is laid out but not written.

One loop hands out buffers in order; new bytes, a given buffer, a file and any sink consume it. A
burnpack's `Plan` is such a value, and so are the plans of the other formats that stores write.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from bpk_lite._door import desktop
from bpk_lite.pack._errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpk_lite.pack._data import Part
    from bpk_lite.pack._source import ByteSink
    from bpk_lite.pack._tensor import Tensor

__all__ = ["Layout", "Progress"]

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called as ``progress(name, done_bytes, total_bytes)`` while long work goes on: name of the tensor
at hand, bytes of the whole work. What it raises ends the work, as any failure would."""


class Layout:
    """A file as a value: its size, and its bytes in order. Subclasses give `parts`.

    Attributes:
        size: bytes in all.
        tensors: the tensors in it, in write order.
        computes: whether making the parts is work of its own, as checksums are, so that the next
            are better made while the last are written.
    """

    __slots__ = ()

    computes: ClassVar[bool] = False
    size: int
    tensors: tuple[Tensor, ...]

    def parts(self) -> Iterator[Part]:
        """Yield the bytes in order, each with the tensor it is of.

        Providers of deferred tensors are called once each, in write order, when their turn comes.

        Raises:
            ProviderError: a provider raised or gave another number of bytes; names the tensor.
        """
        raise NotImplementedError

    def buffers(self) -> Iterator[memoryview]:
        """Yield the bytes alone; a buffer is valid until the next is asked for."""
        return (part.buffer for part in self.parts())

    def write_to(self, sink: ByteSink) -> None:
        """Write all of it to a sink: anything with ``write``. Raises as `buffers` and it do."""
        for buffer in self.buffers():
            sink.write(buffer)

    def into_bytes(self) -> bytes:
        """Return it as bytes. All data are copied once, straight to their place."""
        stream = io.BytesIO()  # grows in place and gives its buffer away without a copy
        self.write_to(stream)
        return stream.getvalue()

    def write_into(self, buffer: Any) -> int:
        """Write it to the front of a writeable buffer and return its size (C102).

        Bytes behind it are left alone. After an error in a provider the content is undefined.

        Raises:
            WriteError: the buffer is smaller than `size`; it is not touched.
            TypeError: not a contiguous writeable buffer.
        """
        view = memoryview(buffer).cast("B")
        if view.readonly:
            raise TypeError("the buffer is read-only")
        if view.nbytes < self.size:
            raise WriteError(f"the buffer is too small: {view.nbytes} bytes, needed {self.size}")
        position = 0
        for piece in self.buffers():
            view[position : position + piece.nbytes] = piece
            position += piece.nbytes
        return position

    def write_to_file(
        self,
        path: Any,
        *,
        overwrite: bool = True,
        extension: bool = True,
        durable: bool = True,
        progress: Progress | None = None,
        digest: Any = None,
    ) -> str:
        """Write a file atomically: whoever opens `path` finds the old file or the new one, whole.

        The file is built in a scratch file beside the destination, synced, and renamed (C109 to
        C117). After any error the destination is untouched and the scratch file is gone.

        Data in memory or in a mapping are written from where they are. Of deferred tensors one
        window of 8 MiB is written, by a second thread, while the next is made; a provider that
        gives all its bytes at once has them written before the next one is called.

        Args:
            path: the destination. One without an extension gets ``.bpk`` (C103).
            overwrite: replace an existing file.
            extension: False takes the path exactly as given.
            durable: sync the data and the directory, so that the file survives a loss of power.
            progress: called after each window, in this thread. What it raises ends the save.
            digest: an object with ``update``, as of `hashlib` or blake3, that is given all bytes of
                the file; `bpk_lite.desktop.hasher` makes one.

        Returns:
            The path that was written.

        Raises:
            AlreadyExists: the path exists and `overwrite` is False; looked at before any provider
                runs, and again, without a race, when the file is published (C130).
            WriteError: from the system; names the path.
            ProviderError: from a deferred tensor.
        """
        written = desktop().write_atomic(
            self,
            path,
            overwrite=overwrite,
            extension=extension,
            durable=durable,
            progress=progress,
            digest=digest,
        )
        return str(written)

    def write_to_file_in_place(
        self,
        path: Any,
        *,
        overwrite: bool = True,
        extension: bool = True,
        progress: Progress | None = None,
        digest: Any = None,
    ) -> str:
        """Write a file directly, keeping its inode, links and mode (C106). Not synced.

        Needs no space for a second copy. A failure leaves a truncated file. Arguments as for
        `write_to_file`.

        Raises:
            AlreadyExists, WriteError, ProviderError: as for `write_to_file`.
            PlanError: one of the tensors lies in the very file (C108); it is not touched.
        """
        written = desktop().write_in_place(
            self,
            path,
            overwrite=overwrite,
            extension=extension,
            progress=progress,
            digest=digest,
        )
        return str(written)
