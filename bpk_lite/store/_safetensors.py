"""The SafeTensors format: a JSON header, then the tensors back to back (S87 to S99, S238).

Read over any source of bytes, lazily and without copies; written with the same bytes for the same
content, which the reference does not promise: its metadata come in random order. What the reference
crate accepts and refuses is accepted and refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from bpk_lite.pack import (
    BytesSource,
    DType,
    FormatError,
    InvalidHeader,
    Layout,
    LimitError,
    MetadataDeserializationError,
    MetadataSerializationError,
    Part,
    PlanError,
    Tensor,
    TruncatedError,
    ValidationError,
    looks_like,
)
from bpk_lite.store._errors import UnsupportedDType

if TYPE_CHECKING:
    from bpk_lite.pack import ByteSource

__all__ = ["SafetensorsEntry", "SafetensorsFile", "SafetensorsPlan"]

_LIMIT = 100_000_000
_WORD = 8
_U64 = 1 << 64

# code -> bits of an element
_BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
_DTYPES = {
    "BOOL": DType.BOOL,
    **{
        code: DType.parse(code)
        for code in (
            "F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8",
        )
    },
}  # fmt: skip
# Larger alignments first (S89), so that data are aligned without gaps.
_ORDER = ("U64", "I64", "F64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "I8", "U8", "BOOL")


@dataclass(frozen=True, slots=True)
class SafetensorsEntry:
    """What the header says of one tensor.

    Attributes:
        name: its name.
        code: the format's word for the element type: ``"F32"``, ``"F8_E4M3"``, ``"C64"``, …
        shape: its dimensions.
        start: offset of its first byte in the data.
        end: offset behind its last byte.
    """

    name: str
    code: str
    shape: tuple[int, ...]
    start: int
    end: int


class SafetensorsFile(Mapping[str, Tensor]):
    """An open SafeTensors file: a mapping from name to tensor, sorted by name.

    Asking for a tensor whose element type Burn does not have (float8, complex, …) raises
    `UnsupportedDType`; `entries` and `buffer` give its description and raw bytes.

    Attributes:
        metadata: the header's ``__metadata__``.
        entries: name to entry, sorted by name.
    """

    __slots__ = ("_data_start", "_source", "entries", "metadata")

    def __init__(self, source: ByteSource) -> None:
        """Open a source, which belongs to the file from then on.

        Raises:
            FormatError: not a SafeTensors file, or a broken one; the subclass says what.
        """
        try:
            text, self._data_start = _header(source)
            self.metadata, entries = _parsed(text, source.name)
            _check_layout(entries, source.size - self._data_start, source.name)
        except BaseException:
            source.close()
            raise
        entries.sort(key=lambda entry: entry.name)
        self.entries: Mapping[str, SafetensorsEntry] = {entry.name: entry for entry in entries}
        self._source = source

    @classmethod
    def from_bytes(cls, buffer: Any) -> SafetensorsFile:
        """Open a file in memory. The buffer is kept and not copied. Raises FormatError."""
        return cls(BytesSource(buffer))

    def __getitem__(self, name: str) -> Tensor:
        entry = self.entries[name]
        dtype = _DTYPES.get(entry.code)
        if dtype is None:
            raise UnsupportedDType(
                f"{self._source.name}: tensor {name!r} is {entry.code}, which Burn has no element "
                "type for; SafetensorsFile.buffer() gives its bytes"
            )
        return Tensor.over(
            name, dtype, entry.shape, self._source, self._data_start + entry.start,
            entry.end - entry.start,
        )  # fmt: skip

    def buffer(self, name: str) -> memoryview:
        """Return the raw bytes of a tensor of any element type. Raises KeyError."""
        entry = self.entries[name]
        return self._source.read_at(self._data_start + entry.start, entry.end - entry.start)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def close(self) -> None:
        """Release the source. Arrays that were taken stay valid."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _header(source: ByteSource) -> tuple[str, int]:
    """Return the header's text and the offset of the data."""
    name, size = source.name, source.size
    head = bytes(source.read_at(0, min(size, 512)))
    if size < _WORD:
        raise InvalidHeader(
            f"{name}: {size} bytes are too few for a SafeTensors file; this is "
            f"{looks_like(head, size)}"
        )
    length = int.from_bytes(head[:_WORD], "little")
    if length > _LIMIT:
        raise LimitError(
            f"{name}: not a SafeTensors file: the header would have {length} bytes, the limit is "
            f"{_LIMIT}; this is {looks_like(head, size)}"
        )
    if _WORD + length > size:
        raise InvalidHeader(
            f"{name}: the header would have {length} bytes, the file has {size}; this is "
            f"{looks_like(head, size)}"
        )
    try:
        text = bytes(source.read_at(_WORD, length)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise MetadataDeserializationError(f"{name}: the header is not UTF-8: {error}") from error
    return text, _WORD + length


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _parsed(text: str, source: str) -> tuple[dict[str, str], list[SafetensorsEntry]]:
    """Return metadata and entries of a header; of a name given twice, the last (S238)."""
    try:
        top = json.loads(text, parse_constant=_refuse_constant)
        text.encode()  # an escaped lone surrogate is no text
        json.dumps(top, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise MetadataDeserializationError(f"{source}: the header is not JSON: {error}") from error
    if type(top) is not dict:
        raise MetadataDeserializationError(f"{source}: the header is no JSON object")
    metadata = top.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata
    if type(metadata) is not dict or not all(type(text) is str for text in metadata.values()):
        raise MetadataDeserializationError(f"{source}: __metadata__ is not text to text")
    return metadata, [_entry(name, fields, source) for name, fields in top.items()]


def _entry(name: str, fields: Any, source: str) -> SafetensorsEntry:
    def wrong(what: str) -> MetadataDeserializationError:
        return MetadataDeserializationError(f"{source}: tensor {name!r}: {what}")

    if type(fields) is not dict:
        raise wrong("its description is no JSON object")
    missing = [key for key in ("dtype", "shape", "data_offsets") if key not in fields]
    if missing:
        raise wrong(f"no {' and no '.join(missing)}")
    code, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if code not in _BITS:
        raise wrong(f"unknown dtype {code!r}; expected one of {', '.join(_BITS)}")
    if type(shape) is not list or not all(map(_unsigned, shape)):
        raise wrong(f"shape is {shape!r}, expected a list of unsigned integers")
    if type(offsets) is not list or len(offsets) != 2 or not all(map(_unsigned, offsets)):
        raise wrong(f"data_offsets is {offsets!r}, expected two unsigned integers")
    return SafetensorsEntry(name, code, tuple(shape), *offsets)


def _unsigned(value: Any) -> bool:
    return type(value) is int and 0 <= value < _U64


def _check_layout(entries: list[SafetensorsEntry], available: int, source: str) -> None:
    """Check that the tensors fill the data without hole, overlap or rest (S88)."""
    position = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
        where = f"{source}: tensor {entry.name!r}"
        if entry.end < entry.start:
            raise ValidationError(f"{where} ends at {entry.end}, before its start at {entry.start}")
        if entry.start != position:
            what = "overlaps the tensor before it" if entry.start < position else "follows a hole"
            raise ValidationError(
                f"{where} starts at {entry.start}, expected {position}: it {what}"
            )
        elements = 1
        for dim in entry.shape:
            elements *= dim
            if elements >= _U64:
                break
        bits = elements * _BITS[entry.code]
        if bits >= _U64:
            raise ValidationError(f"{where}: shape {list(entry.shape)} has too many elements")
        if bits % 8 or bits // 8 != entry.end - entry.start:
            raise ValidationError(
                f"{where} has {entry.end - entry.start} bytes, but {entry.code} of shape "
                f"{list(entry.shape)} needs {bits / 8:g}"
            )
        position = entry.end
    if available < position:
        raise TruncatedError(
            f"{source}: the tensors end at {position}, but there are {available} bytes of data; "
            "was the save or the download interrupted?"
        )
    if available > position:
        raise FormatError(
            f"{source}: the tensors end at {position}, but there are {available} bytes of data"
        )


@dataclass(frozen=True, slots=True)
class SafetensorsPlan(Layout):
    """A SafeTensors file, laid out but not written.

    Attributes:
        header: length and JSON, padded with spaces to a multiple of 8.
        size: bytes in all.
        tensors: in the order of their data: by element type, then by name (S89).
    """

    header: bytes
    size: int
    tensors: tuple[Tensor, ...]

    @classmethod
    def of(
        cls, tensors: Iterable[Tensor], metadata: Mapping[str, str] | None = None
    ) -> SafetensorsPlan:
        """Lay tensors out. Touches no data; parameter ids are not stored (S92).

        Args:
            tensors: of any order.
            metadata: text to text; None writes no ``__metadata__``, an empty one an empty one.

        Raises:
            UnsupportedDType: a quantized tensor; names it (S97).
            PlanError: two tensors of one name, or one named ``__metadata__``.
            MetadataSerializationError: text that is not valid Unicode.
        """
        coded = sorted(
            ((_code(tensor), tensor) for tensor in tensors),
            key=lambda pair: (_ORDER.index(pair[0]), pair[1].name.encode(errors="surrogatepass")),
        )
        top: dict[str, Any] = (
            {} if metadata is None else {"__metadata__": dict(sorted(metadata.items()))}
        )
        position = 0
        for code, tensor in coded:
            tensor.check()
            if tensor.name in top or tensor.name == "__metadata__":
                raise PlanError(f"two tensors are named {tensor.name!r}, or one __metadata__")
            end = position + tensor.nbytes
            top[tensor.name] = {
                "dtype": code,
                "shape": list(tensor.shape),
                "data_offsets": [position, end],
            }
            position = end
        try:
            blob = json.dumps(top, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError as error:
            raise MetadataSerializationError(
                f"a name or metadata text is no Unicode: {error}"
            ) from error
        blob += b" " * (-len(blob) % _WORD)
        header = len(blob).to_bytes(_WORD, "little") + blob
        return cls(header, len(header) + position, tuple(tensor for _, tensor in coded))

    def parts(self) -> Iterator[Part]:
        """Yield the bytes in order; see `Layout.parts`.

        Raises:
            ProviderError: a deferred tensor's provider failed; names the tensor.
        """
        yield Part(memoryview(self.header))
        for tensor in self.tensors:
            yield from tensor.parts()


def _code(tensor: Tensor) -> str:
    """Return the format's word for a tensor's elements (S97); U16 extends Burn's list."""
    dtype = tensor.dtype
    if dtype.kind == "quantized":
        raise UnsupportedDType(
            f"tensor {tensor.name!r} is {dtype}: SafeTensors has no quantized element type; "
            "dequantize it, or save a burnpack"
        )
    if dtype.kind == "bool":
        return {"Native": "BOOL", "U8": "U8", "U32": "U32"}[str(dtype.store)]
    return "F32" if dtype.name == "Flex32" else dtype.name
