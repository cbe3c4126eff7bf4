"""What a pack holds, as one value: what every face of the inspector shows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bpk_lite.inspect._collector import collector_paused
from bpk_lite.inspect._content import content_of
from bpk_lite.inspect._kind import record_kind
from bpk_lite.inspect._stats import plain
from bpk_lite.inspect._tree import tree
from bpk_lite.inspect._verify import from_entries, is_regular
from bpk_lite.pack import Reader
from bpk_lite.pack._header import HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.inspect._content import Inspectable
    from bpk_lite.inspect._tree import Node
    from bpk_lite.inspect._verify import Finding
    from bpk_lite.pack import Scalar

__all__ = ["Row", "Summary", "summarize"]


class Row(NamedTuple):
    """One tensor, described. A named tuple, since a hundred thousand are made at once.

    Attributes:
        name: its name.
        dtype: its element type as text, with the store or scheme.
        shape: its dimensions.
        nbytes: bytes in the file.
        offset: absolute offset in the file; None where it lies in no pack.
        param_id: identity, or None.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    offset: int | None
    param_id: int | None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON can hold it."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "nbytes": self.nbytes,
            "offset": self.offset,
            "param_id": self.param_id,
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """A pack, described (S223). Made of metadata alone; no tensor data are read.

    Other things that hold tensors have no header: `size`, `version`, `metadata_size`, `data_start`
    and `padding` are None for them.

    Attributes:
        name: path or name of the source.
        size: bytes of the file.
        version: format version.
        metadata_size: bytes of CBOR.
        data_start: absolute offset of the data section.
        metadata: user metadata.
        scalars: typed scalars.
        rows: the tensors, in byte order of their names.
        kind: what the pack is, as its names tell: which record of Burn's.
        format: ``"burnpack"``, ``"safetensors"``, ``"pytorch"``, …; empty for what is no file.
        padding: bytes of the file that hold nothing: gaps for alignment, and what follows the end.
        warnings: what is odd about it, as far as the metadata tell; `verify` reads more.
        notes: what could not be taken over from a file of another format.
    """

    name: str
    size: int | None
    version: int | None
    metadata_size: int | None
    data_start: int | None
    metadata: Mapping[str, str]
    scalars: Mapping[str, Scalar]
    rows: tuple[Row, ...]
    kind: str = ""
    format: str = "burnpack"
    padding: int | None = None
    warnings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def elements(self) -> int:
        """Elements of all tensors: for a module record, its number of parameters."""
        return sum(row.elements for row in self.rows)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(row.nbytes for row in self.rows)

    @property
    def padding_share(self) -> float | None:
        """Part of the file that is padding, 0 to 1; None where there is no file."""
        return self.padding / self.size if self.size and self.padding is not None else None

    @property
    def dtypes(self) -> dict[str, tuple[int, int]]:
        """Number of tensors and bytes by dtype, largest first."""
        totals: dict[str, tuple[int, int]] = {}
        for row in self.rows:
            count, nbytes = totals.get(row.dtype, (0, 0))
            totals[row.dtype] = (count + 1, nbytes + row.nbytes)
        return dict(sorted(totals.items(), key=lambda item: -item[1][1]))

    @property
    def parameters(self) -> dict[str, int]:
        """Number of elements by dtype, largest first."""
        totals: dict[str, int] = {}
        for row in self.rows:
            totals[row.dtype] = totals.get(row.dtype, 0) + row.elements
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def tree(self) -> Node:
        """Return the tensors by the components of their dotted paths, with counts at each."""
        return tree(self.rows, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON can hold it: infinities and NaN as text, ids as integers."""
        parameters = self.parameters
        return {
            "name": self.name,
            "format": self.format,
            "kind": self.kind,
            "size": self.size,
            "version": self.version,
            "metadata_size": self.metadata_size,
            "data_start": self.data_start,
            "padding": self.padding,
            "metadata": dict(self.metadata),
            "scalars": {key: [item.kind, plain(item.value)] for key, item in self.scalars.items()},
            "tensors": [row.to_dict() for row in self.rows],
            "totals": {
                "tensors": len(self.rows),
                "elements": self.elements,
                "bytes": self.tensor_bytes,
                "dtypes": {
                    dtype: {"tensors": count, "bytes": nbytes, "elements": parameters[dtype]}
                    for dtype, (count, nbytes) in self.dtypes.items()
                },
            },
            "warnings": [asdict(finding) for finding in self.warnings],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Return it in a few lines, without the tensors."""
        from bpk_lite.inspect._text import summary_text

        return summary_text(self)

    def _repr_html_(self) -> str:
        from bpk_lite.inspect._html import html

        return html(self)


def summarize(pack: Inspectable, *, name: str | None = None) -> Summary:
    """Describe a pack, a record, the contents of a file of weights, or arrays by name.

    Reads no tensor data. 100 000 tensors take about 0.4 s.

    Args:
        pack: what to describe.
        name: what to call it; a pack has the name of its source.

    Raises:
        TypeError: it holds no tensors.
    """
    with collector_paused():
        return _of_pack(pack, name) if isinstance(pack, Reader) else _of_others(pack, name)


def _of_others(pack: Inspectable, name: str | None) -> Summary:
    content = content_of(pack)
    rows = tuple(
        Row(
            tensor.name,
            str(tensor.dtype),
            tensor.shape,
            tensor.nbytes,
            None,
            None if tensor.param_id is None else int(tensor.param_id),
        )
        for tensor in content.tensors.values()
    )
    return Summary(
        type(pack).__name__ if name is None else name,
        None,
        None,
        None,
        None,
        content.metadata,
        content.scalars,
        rows,
        content.kind,
        content.format,
        notes=content.notes,
    )


def _of_pack(pack: Reader, name: str | None) -> Summary:
    header = pack.header
    start = header.data_start
    table = pack.table()
    # by identity, since hashing a dtype costs more than all the rest here
    texts = {key: str(dtype) for key, dtype in {id(one): one for one in table.dtypes}.items()}
    rows = zip(
        table.names,
        [texts[id(dtype)] for dtype in table.dtypes],
        table.shapes,
        [end - start for start, end in zip(table.starts, table.ends, strict=True)],
        [start + offset for offset in table.starts],
        table.param_ids,
        strict=True,
    )
    ids = sum(param_id is not None for param_id in table.param_ids)
    warnings: tuple[Finding, ...] = ()
    used = sum(table.ends) - sum(table.starts)
    if not is_regular(pack, table):
        entries = pack.entries()
        warnings = tuple(from_entries(pack, entries))
        used = _covered((entry.start, entry.end) for entry in entries)
    return Summary(
        pack.source.name if name is None else name,
        pack.nbytes,
        header.version,
        header.metadata_size,
        start,
        pack.metadata,
        pack.scalars,
        tuple(map(partial(tuple.__new__, Row), rows)),
        record_kind(pack, pack.scalars, pack.metadata, ids),
        padding=pack.nbytes - HEADER_SIZE - header.metadata_size - used,
        warnings=warnings,
    )


def _covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Return how many bytes ascending ranges cover; they may overlap."""
    total = position = 0
    for start, end in ranges:
        total += max(0, end - max(start, position))
        position = max(position, end)
    return total
