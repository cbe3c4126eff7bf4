"""What a pack holds, as one value."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bpk_lite.inspect._kind import record_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpk_lite.pack import Entry, Reader, Scalar

__all__ = ["Row", "Summary", "summarize"]


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor, described.

    Attributes:
        name: its name.
        dtype: its element type as text, with the store or scheme.
        shape: its dimensions.
        nbytes: bytes in the file.
        offset: absolute offset in the file.
        param_id: identity, or None.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    offset: int
    param_id: int | None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Summary:
    """A pack, described (S223). Made of metadata alone; no tensor data are read.

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
    """

    name: str
    size: int
    version: int
    metadata_size: int
    data_start: int
    metadata: Mapping[str, str]
    scalars: Mapping[str, Scalar]
    rows: tuple[Row, ...]
    kind: str = ""

    @property
    def elements(self) -> int:
        """Elements of all tensors: for a module record, its number of parameters."""
        return sum(row.elements for row in self.rows)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(row.nbytes for row in self.rows)

    @property
    def dtypes(self) -> dict[str, tuple[int, int]]:
        """Number of tensors and bytes by dtype, largest first."""
        totals: dict[str, tuple[int, int]] = {}
        for row in self.rows:
            count, nbytes = totals.get(row.dtype, (0, 0))
            totals[row.dtype] = (count + 1, nbytes + row.nbytes)
        return dict(sorted(totals.items(), key=lambda item: -item[1][1]))

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON can hold it: infinities and NaN as text, ids as integers."""
        return {
            "name": self.name,
            "kind": self.kind,
            "size": self.size,
            "version": self.version,
            "metadata_size": self.metadata_size,
            "data_start": self.data_start,
            "metadata": dict(self.metadata),
            "scalars": {key: [item.kind, _plain(item.value)] for key, item in self.scalars.items()},
            "tensors": [asdict(row) for row in self.rows],
            "totals": {
                "tensors": len(self.rows),
                "elements": self.elements,
                "bytes": self.tensor_bytes,
                "dtypes": {
                    dtype: {"tensors": count, "bytes": nbytes}
                    for dtype, (count, nbytes) in self.dtypes.items()
                },
            },
        }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def summarize(pack: Reader) -> Summary:
    """Describe an open pack. Reads no tensor data."""
    header = pack.header

    def row(entry: Entry) -> Row:
        return Row(
            entry.name,
            str(entry.dtype),
            entry.shape,
            entry.nbytes,
            header.data_start + entry.start,
            entry.param_id,
        )

    return Summary(
        pack.source.name,
        pack.nbytes,
        header.version,
        header.metadata_size,
        header.data_start,
        pack.metadata,
        pack.scalars,
        tuple(row(entry) for entry in sorted(pack.entries(), key=lambda entry: entry.name)),
        record_kind(
            pack,
            pack.scalars,
            pack.metadata,
            sum(entry.param_id is not None for entry in pack.entries()),
        ),
    )
