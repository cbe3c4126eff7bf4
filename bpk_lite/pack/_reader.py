"""Open a pack and hand out its tensors."""

from __future__ import annotations

import difflib
import gc
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from bpk_lite._door import desktop, inspector
from bpk_lite.pack._dtype import PLAIN_BY_NAME
from bpk_lite.pack._errors import ReadError, TensorNotFound
from bpk_lite.pack._format import human_bytes, safe_text
from bpk_lite.pack._header import HEADER_SIZE, SNIFF_SIZE, Header
from bpk_lite.pack._limits import DEFAULT_LIMITS, Limits
from bpk_lite.pack._metadata import Metadata
from bpk_lite.pack._source import BytesSource
from bpk_lite.pack._tensor import Tensor

if TYPE_CHECKING:
    from bpk_lite.pack._canonical import Table
    from bpk_lite.pack._header import PackLayout
    from bpk_lite.pack._metadata import Entry
    from bpk_lite.pack._scalar import Scalar
    from bpk_lite.pack._source import ByteSource

__all__ = ["Reader"]


class Reader(Mapping[str, Tensor]):
    """An open pack: a mapping from tensor name to `Tensor`, in ascending UTF-8 byte order (C82).

    Opening reads header and metadata and checks every descriptor (C75 to C81, C123); the data are
    read when a tensor is used. A source is kept open, so a file that is replaced meanwhile goes on
    giving what it held when it was opened.

    Use it as a context manager, or `close` it. Arrays that were taken from it stay valid.

    Attributes:
        header: version, size of the metadata, start of the data.
        metadata: user metadata, text to text.
        scalars: typed scalars.
        limits: what was accepted at most.
    """

    __slots__ = ("_metadata", "_source", "header", "limits", "metadata", "scalars")

    def __init__(
        self, source: ByteSource, header: Header, metadata: Metadata, limits: Limits
    ) -> None:
        self._source = source
        self._metadata = metadata
        self.header = header
        self.limits = limits
        self.metadata: Mapping[str, str] = MappingProxyType(metadata.text)
        self.scalars: Mapping[str, Scalar] = MappingProxyType(metadata.scalars)

    @classmethod
    def from_source(
        cls,
        source: ByteSource,
        *,
        limits: Limits = DEFAULT_LIMITS,
        layout: PackLayout = "aligned",
    ) -> Self:
        """Open a pack over any source of bytes. It belongs to the reader, which closes it.

        Args:
            source: the bytes.
            limits: what to accept at most.
            layout: ``"unaligned"`` for the files of Burn 0.19, which were packed without gaps.

        Raises:
            FormatError: not a pack, or a broken one; the subclass says what (container.md 13).
            ReadError: from the source.
        """
        try:
            size = source.size
            head = bytes(source.read_at(0, min(size, SNIFF_SIZE)))
            header = Header.decode(head, size=size, name=source.name, limits=limits, layout=layout)
            blob = bytes(source.read_at(HEADER_SIZE, header.metadata_size))
            # The collector would look at a hundred thousand new dicts over and over, for nothing.
            collecting = gc.isenabled()
            gc.disable()
            try:
                metadata = Metadata.parse(
                    blob, header=header, size=size, source=source.name, limits=limits
                )
            finally:
                if collecting:
                    gc.enable()
        except BaseException:
            source.close()
            raise
        return cls(source, header, metadata, limits)

    @classmethod
    def from_bytes(
        cls,
        buffer: Any,
        *,
        limits: Limits = DEFAULT_LIMITS,
        name: str = "<bytes>",
        layout: PackLayout = "aligned",
    ) -> Self:
        """Open a pack in memory: any contiguous buffer. It is kept, and nothing is copied (C84).

        See `from_source` for `limits` and `layout`.

        Raises:
            FormatError: not a pack, or a broken one.
            TypeError: not a contiguous buffer.
        """
        return cls.from_source(BytesSource(buffer, name), limits=limits, layout=layout)

    @classmethod
    def from_static(cls, package: str, resource: str, *, limits: Limits = DEFAULT_LIMITS) -> Self:
        """Open a pack that is part of an installed package, as ``include_bytes!`` does in Rust.

        Works for packages in folders and in zip files, in Pyodide too. The data are read once, by
        the package's own loader, and viewed from then on.

        Args:
            package: import name of the package, ``"my_package"``.
            resource: path of the pack in it, ``"weights/model.bpk"``.
            limits: what to accept at most.

        Raises:
            ReadError: no such package or resource.
            FormatError: not a pack, or a broken one.
        """
        import pkgutil

        try:
            blob = pkgutil.get_data(package, resource)
        except (ImportError, OSError) as error:
            raise ReadError(f"no resource {resource!r} in package {package!r}: {error}") from error
        if blob is None:
            raise ReadError(f"package {package!r} has no loader that reads resources")
        return cls.from_bytes(blob, limits=limits, name=f"{package}:{resource}")

    @classmethod
    def from_file(
        cls,
        path: Any,
        *,
        limits: Limits = DEFAULT_LIMITS,
        backend: Literal["auto", "mmap", "read"] = "auto",
        exact: bool = False,
        layout: PackLayout = "aligned",
        advise: Literal["normal", "sequential", "random", "willneed"] | None = None,
        threads: int | None = None,
    ) -> Self:
        """Open a pack in a file, mapped where the system can map it.

        Args:
            path: the file. One without extension that does not exist means the same name with
                ``.bpk`` (C85).
            limits: what to accept at most.
            backend: ``"mmap"``, ``"read"``, or ``"auto"``: map, and read where mapping fails.
            exact: take the path exactly as given (C124).
            layout: see `from_source`.
            advise: a hint to the system: read ahead (``"sequential"``, ``"willneed"``) or do not
                (``"random"``).
            threads: how many read at once when much is copied; up to 4 unless given. More pay on
                cold or network disks.

        Raises:
            ReadError: missing, not permitted, a directory.
            FormatError: not a pack, or a broken one.
        """
        source = desktop().open_source(
            path, limits=limits, backend=backend, exact=exact, advise=advise, threads=threads
        )
        return cls.from_source(source, limits=limits, layout=layout)

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        limits: Limits = DEFAULT_LIMITS,
        layout: PackLayout = "aligned",
        cache: Any = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Open a pack behind an address; needs the extra ``remote``.

        The metadata come by one request, by two if they are long, and each tensor by one when it is
        used; `bpk_lite.load_file` joins neighbours. A file that changes meanwhile is an error where
        the server tells versions apart, as all do over http.

        Args:
            url: ``https://…``, ``s3://…``, ``hf://…`` or anything else that fsspec knows.
            limits: what to accept at most.
            layout: see `from_source`.
            cache: a folder in which blocks that were read are kept for the next time.
            storage_options: for fsspec: credentials, headers, endpoints.

        Raises:
            DependencyError: fsspec, or what it needs for this scheme, is not installed.
            ReadError: it cannot be read, or only as a whole.
            FormatError: not a pack, or a broken one.
        """
        source = desktop().open_remote(
            url, limits=limits, cache=cache, storage_options=storage_options
        )
        return cls.from_source(source, limits=limits, layout=layout)

    # -- tensors

    def __getitem__(self, name: str) -> Tensor:
        try:
            entry = self._metadata.entry(name)
        except KeyError:
            raise TensorNotFound(self._not_found(name)) from None
        return Tensor.window(entry, self._source, self.header.data_start)

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata.index)

    def __len__(self) -> int:
        return len(self._metadata.index)

    def __contains__(self, name: object) -> bool:
        return name in self._metadata.index

    def tensors(self, order: Literal["name", "data"] = "name") -> list[Tensor]:
        """Return all tensors, by name or in the order in which their data lie in the file."""
        if order == "name":
            return list(self.values())
        return [
            Tensor.window(entry, self._source, self.header.data_start) for entry in self.entries()
        ]

    def entries(self) -> list[Entry]:
        """Return what the metadata says of all tensors, in the order of their data."""
        return self._metadata.entries()

    def table(self) -> Table:
        """Return the same by name and field by field, as lists: a fifth of the work for many."""
        return self._metadata.table

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return all tensors as arrays, by name; see `Tensor.numpy`.

        Views without a copy where the pack is in memory or mapped: a million a second.
        """
        view = getattr(self._source, "view", None)
        if view is None:
            return {name: tensor.numpy() for name, tensor in self.items()}
        whole = np.frombuffer(view(), np.uint8)  # keeps a mapping alive, which a buffer does not
        plain = {id(dtype): dtype.stored for dtype in PLAIN_BY_NAME.values()}
        start, table = self.header.data_start, self._metadata.table
        found = {}
        for name, dtype, shape, offset in zip(
            table.names, table.dtypes, table.shapes, table.starts, strict=True
        ):
            stored = plain.get(id(dtype))
            if stored is None:
                found[name] = self[name].numpy()  # booleans are checked, quantized values computed
                continue
            try:
                found[name] = np.ndarray(shape, stored, whole, start + offset)
            except (ValueError, OverflowError, TypeError):
                found[name] = self[name].numpy()  # which says what numpy cannot do
        return found

    # -- the whole

    @property
    def source(self) -> ByteSource:
        """Where the bytes come from."""
        return self._source

    @property
    def nbytes(self) -> int:
        """Size of the whole pack, with anything that follows its last tensor."""
        return self._source.size

    def close(self) -> None:
        """Release the file or buffer. Arrays that were taken stay valid; may be called again."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return _from_pickle, (self._source, self.limits, self.header.layout)

    def __eq__(self, other: object) -> bool:
        return self is other  # a Mapping would compare all tensors, which compare by identity

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        total = human_bytes(sum(entry.nbytes for entry in self.entries()))
        parts = [f"{len(self)} tensor{'' if len(self) == 1 else 's'}", total]
        if self.metadata:
            parts.append(f"{len(self.metadata)} metadata")
        if self.scalars:
            parts.append(f"{len(self.scalars)} scalars")
        return f"<Reader {safe_text(self._source.name)}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: made of metadata alone, nothing is read."""
        return str(inspector().html(self))

    def _not_found(self, name: object) -> str:
        close = difflib.get_close_matches(str(name), self._metadata.index, n=3)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        return f"{self._source.name} has no tensor {name!r} among its {len(self)}{hint}"


def _from_pickle(source: ByteSource, limits: Limits, layout: PackLayout) -> Reader:
    return Reader.from_source(source, limits=limits, layout=layout)
