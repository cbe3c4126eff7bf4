"""From the metadata's CBOR to checked values, and back.

The wanted operations are: check all descriptors at open, as Burn does (C75), and hand out one at a
time, later. For 100 000 tensors making an object for each costs more than decoding the CBOR, so all
are kept field by field in a `Table`, and an `Entry` is made when somebody asks.

Metadata in exactly Burn's form are parsed for all tensors at once (`_canonical`). All others are
decoded and checked by one plain loop. It passes what is common (a plain dtype, the fields Burn
writes); whatever looks unusual goes to `_check`, which is slow, exact and the only place that words
a complaint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import cbor2

from bpk_lite.pack._canonical import Table, parse_canonical
from bpk_lite.pack._cbor import Float, decode, encode
from bpk_lite.pack._dtype import PLAIN_BY_NAME, DType
from bpk_lite.pack._errors import (
    LimitError,
    MetadataDeserializationError,
    TruncatedError,
    ValidationError,
)
from bpk_lite.pack._header import HEADER_SIZE
from bpk_lite.pack._items import (
    dictionary_of,
    dtype_of,
    require_fields,
    scalar_of,
    unsigned_of,
    wrong,
)
from bpk_lite.pack._limits import U64_MAX
from bpk_lite.pack._param_id import ParamId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.pack._header import Header
    from bpk_lite.pack._limits import Limits
    from bpk_lite.pack._scalar import Scalar

__all__ = ["Entry", "Metadata", "needed_bytes"]

_MANY = 24 << 10  # bytes, about 300 tensors: below, one by one is as fast as at once

_ITEM_SIZES = {name: dtype.itemsize for name, dtype in PLAIN_BY_NAME.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """What the metadata says of one tensor.

    Attributes:
        name: any text, unique in the pack.
        dtype: element type.
        shape: dimensions, outermost first; ``()`` for a single number.
        start: offset of the first byte, from the start of the data section.
        end: offset behind the last byte.
        param_id: identity of the parameter, or None.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    start: int
    end: int
    param_id: ParamId | None = None

    @property
    def nbytes(self) -> int:
        """Bytes in the data section."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Metadata:
    """The checked metadata of a pack.

    Attributes:
        table: all tensors, in ascending byte order of their names.
        index: tensor name to its row in the table.
        text: user metadata, text to text.
        scalars: typed scalars.
    """

    table: Table
    index: Mapping[str, int]
    text: Mapping[str, str]
    scalars: Mapping[str, Scalar]

    @classmethod
    def parse(
        cls, blob: bytes, *, header: Header, size: int, source: str, limits: Limits
    ) -> Metadata:
        """Decode and check the metadata of a pack of `size` bytes, in the order of C75.

        Raises:
            MetadataDeserializationError: the CBOR, or a field of the wrong type.
            ValidationError: ranges, and lengths against shape and dtype; the first by name.
            LimitError, TruncatedError: which are validation errors too.
        """
        try:
            parsed = None
            if len(blob) >= _MANY and header.layout == "aligned":
                parsed = _parse_at_once(blob, header.data_start, limits)
            table, text, scalars = parsed or _parse_one_by_one(blob, header, limits)
            if table.names:
                _check_size(header, max(table.ends), size)
        except (MetadataDeserializationError, ValidationError) as error:
            raise type(error)(f"{source}: {error}") from error.__cause__
        index = {name: row for row, name in enumerate(table.names)}
        return cls(table, index, text, scalars)

    def entry(self, name: str) -> Entry:
        """Return the entry of a tensor. Raises KeyError."""
        return self._entry(self.index[name])

    def entries(self) -> list[Entry]:
        """Return all entries in the order of their data; of equal starts, empty tensors first."""
        starts, ends = self.table.starts, self.table.ends
        rows = sorted(range(len(starts)), key=lambda row: (starts[row], ends[row]))
        return list(map(self._entry, rows))

    def _entry(self, row: int) -> Entry:
        table = self.table
        param_id = table.param_ids[row]
        return Entry(
            table.names[row],
            table.dtypes[row],
            table.shapes[row],
            table.starts[row],
            table.ends[row],
            None if param_id is None else ParamId(param_id),
        )

    @staticmethod
    def encode(
        entries: Iterable[Entry], text: Mapping[str, str], scalars: Mapping[str, Scalar]
    ) -> bytes:
        """Return the CBOR that Burn writes for the same content (C20 to C33)."""
        top: dict[str, Any] = {
            "tensors": {
                entry.name: _descriptor(entry)
                for entry in sorted(entries, key=lambda entry: entry.name)
            }
        }
        if text:
            top["metadata"] = dict(sorted(text.items()))
        if scalars:
            top["scalars"] = {
                key: {scalar.kind: Float(scalar.value) if scalar.kind == "Float" else scalar.value}
                for key, scalar in sorted(scalars.items())
            }
        return encode(top)


_Parsed: TypeAlias = "tuple[Table, Mapping[str, str], Mapping[str, Scalar]]"


def _parse_at_once(blob: bytes, data_start: int, limits: Limits) -> _Parsed | None:
    """Parse what has exactly the form that Burn writes; None for the rest, faults included."""
    found = parse_canonical(blob, data_start=data_start, limits=limits)
    if found is None:
        return None
    table, fields, end = found
    try:
        rest = decode(bytes([0xA0 + fields]) + blob[end:], depth=limits.depth)
        return None if "tensors" in rest else (table, *_text_and_scalars(rest))
    except MetadataDeserializationError:
        return None


def _parse_one_by_one(blob: bytes, header: Header, limits: Limits) -> _Parsed:
    """Parse any metadata that a pack may have. Raises as `Metadata.parse` does."""
    top = decode(blob, depth=limits.depth)
    if type(top) is not dict:
        wrong("metadata", top, "a map")
    require_fields("metadata", top, ("tensors",))
    descriptors = dictionary_of("tensors", top["tensors"])
    text, scalars = _text_and_scalars(top)
    if len(descriptors) > limits.tensors:
        raise LimitError(f"{len(descriptors)} tensors; the limit is {limits.tensors}")
    if header.layout == "unaligned":
        _modernize(descriptors)
    check_descriptors(descriptors, header.data_start, limits)
    raw = list(descriptors.values())
    dtypes = [item["dtype"] for item in raw]
    ids = [item.get("param_id") for item in raw]
    table = Table(
        list(descriptors),
        [PLAIN_BY_NAME[x] if type(x) is str else dtype_of("dtype", x) for x in dtypes],
        [tuple(item["shape"]) for item in raw],
        [item["data_offsets"][0] for item in raw],
        [item["data_offsets"][1] for item in raw],
        [None if one is cbor2.undefined else one for one in ids],
    )
    return table, text, scalars


def _text_and_scalars(top: dict[str, Any]) -> tuple[Mapping[str, str], Mapping[str, Scalar]]:
    text = dictionary_of("metadata", top.get("metadata", {}))
    for key, value in text.items():
        if type(value) is not str:
            wrong(f"metadata[{key!r}]", value, "text")
    scalars = {
        key: scalar_of(f"scalars[{key!r}]", value)
        for key, value in dictionary_of("scalars", top.get("scalars", {})).items()
    }
    return text, scalars


def needed_bytes(dtype: DType, shape: Iterable[int]) -> int | None:
    """Return the bytes that elements of `dtype` in `shape` take, as Burn computes it (C123, C126).

    The product goes from left to right in u64 and overflow anywhere is failure: None. So
    ``[0, 2^64 - 1, 2^64 - 1]`` needs no bytes and ``[2^64 - 1, 2, 0]`` cannot be.
    """
    assert dtype.itemsize is not None
    count = 1
    for dim in shape:
        count *= dim
        if count > U64_MAX:
            return None
    count *= dtype.itemsize
    return None if count > U64_MAX else count


def check_length(name: str, dtype: DType, shape: tuple[int, ...], nbytes: int) -> str | None:
    """Say how `nbytes` contradicts shape and dtype, or None. QFloat is exempt (C123)."""
    if dtype.kind == "quantized":
        return None
    needed = needed_bytes(dtype, shape)
    if needed == nbytes:
        return None
    found = "more than 64 bits can count" if needed is None else f"{needed} bytes"
    return (
        f"tensor {name!r} declares {nbytes} bytes, but {dtype} of shape {list(shape)} needs {found}"
    )


def check_descriptors(raw: dict[str, Any], data_start: int, limits: Limits) -> int:
    """Check all descriptors in ascending order of name; return the largest end offset.

    `raw` is left in that order. Code points sort like their UTF-8 bytes: `sorted` is C21's order.
    """
    names = sorted(raw)
    if names != list(raw):
        items = [(name, raw[name]) for name in names]
        raw.clear()
        raw.update(items)
    largest = 0
    tensor_limit = limits.tensor_bytes
    end_limit = U64_MAX - data_start
    size_of = _ITEM_SIZES.get
    for name, fields in raw.items():
        try:
            shape = fields["shape"]
            offsets = fields["data_offsets"]
            start, end = offsets
            needed = size_of(fields["dtype"])
            param_id = fields.get("param_id")
            if (
                needed is not None
                and type(shape) is list
                and type(offsets) is list
                and type(start) is int
                and type(end) is int
                and len(fields) == (3 if param_id is None else 4)
                and (param_id is None or (type(param_id) is int and 0 <= param_id <= U64_MAX))
            ):
                for dim in shape:
                    if type(dim) is not int or dim <= 0:
                        break
                    needed *= dim
                else:
                    # dimensions are positive, so no intermediate product exceeded the last one
                    if needed == end - start <= tensor_limit and start >= 0 and end <= end_limit:
                        if end > largest:
                            largest = end
                        continue
        except (TypeError, KeyError, ValueError, AttributeError):
            pass  # `_check` says what is wrong
        end = _check(name, fields, end_limit, tensor_limit)
        largest = max(largest, end)
    return largest


def _check(name: str, raw: Any, end_limit: int, tensor_limit: int) -> int:
    """Check one descriptor, slowly and in words; return its end offset."""
    where = f"tensors[{name!r}]"
    if type(raw) is not dict:
        wrong(where, raw, "a map")
    require_fields(where, raw, ("dtype", "shape", "data_offsets"))
    dtype = dtype_of(f"{where}.dtype", raw["dtype"])
    shape = raw["shape"]
    if type(shape) is not list:
        wrong(f"{where}.shape", shape, "an array")
    for axis, dim in enumerate(shape):
        unsigned_of(f"{where}.shape[{axis}]", dim)
    offsets = raw["data_offsets"]
    if type(offsets) is not list or len(offsets) != 2:
        wrong(f"{where}.data_offsets", offsets, "an array of two offsets")
    start, end = (unsigned_of(f"{where}.data_offsets[{i}]", x) for i, x in enumerate(offsets))
    param_id = raw.get("param_id")
    if param_id is not None and param_id is not cbor2.undefined:
        unsigned_of(f"{where}.param_id", param_id)
    if max(start, end) > end_limit:
        raise ValidationError(f"tensor {name!r} lies at {start} to {end}, beyond 64 bits")
    if end < start:
        raise ValidationError(f"tensor {name!r} ends at {end}, before its start at {start}")
    if end - start > tensor_limit:
        raise LimitError(f"tensor {name!r} has {end - start} bytes; the limit is {tensor_limit}")
    complaint = check_length(name, dtype, tuple(shape), end - start)
    if complaint is not None:
        raise ValidationError(complaint)
    return end


def _modernize(descriptors: dict[str, Any]) -> None:
    """Say in today's words what Burn 0.19 wrote: booleans were plain text (section 16)."""
    for descriptor in descriptors.values():
        if type(descriptor) is dict and descriptor.get("dtype") == "Bool":
            descriptor["dtype"] = {"Bool": "Native"}


def _check_size(header: Header, largest: int, size: int) -> None:
    """Check that the file reaches to the end of its last tensor, padding included (C77)."""
    needed = header.data_start + largest
    if header.layout == "unaligned" and size != needed:
        raise ValidationError(
            f"{size} bytes, but with data right behind the metadata the tensors would end at "
            f"{needed}: no unaligned pack of Burn 0.19; open it without layout"
        )
    if size >= needed:
        return
    if HEADER_SIZE + header.metadata_size + largest == size:
        raise TruncatedError(
            f"an unaligned pack, as Burn 0.19 wrote them: its {size} bytes end where its tensors "
            "would if they followed the metadata directly; open it with layout='unaligned', or use "
            "`bpk convert --unaligned`"
        )
    raise TruncatedError(
        f"{size} bytes, but the tensors end at {needed}: {needed - size} are missing; "
        "was the save or the download interrupted?"
    )


def _descriptor(entry: Entry) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "dtype": entry.dtype.to_cbor(),
        "shape": entry.shape,
        "data_offsets": (entry.start, entry.end),
    }
    if entry.param_id is not None:
        fields["param_id"] = int(entry.param_id)
    return fields
