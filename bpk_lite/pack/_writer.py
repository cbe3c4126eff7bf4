"""Plan a pack.

A `Plan` is a value: all offsets, the metadata bytes and the total size, computed before any data
are touched (C91). What can be done with it is in `Layout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpk_lite.pack._data import Part
from bpk_lite.pack._errors import LimitError, MetadataSerializationError, PlanError
from bpk_lite.pack._header import HEADER_SIZE, Header, aligned
from bpk_lite.pack._layout import Layout
from bpk_lite.pack._limits import DEFAULT_LIMITS, Limits
from bpk_lite.pack._metadata import Entry, Metadata
from bpk_lite.pack._scalar import Scalar
from bpk_lite.pack._tensor import Tensor

if TYPE_CHECKING:
    from bpk_lite.pack._scalar import ScalarLike

__all__ = ["Plan", "Writer"]

_ZEROS = memoryview(bytes(256))


@dataclass(frozen=True, slots=True)
class Plan(Layout):
    """A pack, laid out but not written.

    Attributes:
        entries: descriptors with their offsets, in write order.
        header: all bytes before the data: header, metadata, padding.
        size: bytes of the whole pack (C15, C96).
        tensors: the tensors, in write order.
    """

    entries: tuple[Entry, ...]
    header: bytes
    size: int
    tensors: tuple[Tensor, ...]

    def parts(self) -> Iterator[Part]:
        """Yield the pack's bytes in order (C97); see `Layout.parts`.

        Providers of deferred tensors are called once each, in write order, when their turn comes.

        Raises:
            ProviderError: a provider raised or gave another number of bytes; names the tensor.
        """
        yield Part(memoryview(self.header))
        position = 0
        for entry, tensor in zip(self.entries, self.tensors, strict=True):
            if entry.start > position:
                yield Part(_ZEROS[: entry.start - position])
            yield from tensor.parts()
            position = entry.end

    def __repr__(self) -> str:
        return f"<Plan {len(self.entries)} tensors, {self.size} bytes>"


class Writer:
    """What goes into a pack: tensors in write order, metadata and scalars.

    Args:
        tensors: `Tensor` values, or a mapping from name to array or `Tensor` (whose name the
            mapping's key replaces).
        metadata: text to text.
        scalars: name to `Scalar`, int, float or bool; see `Scalar.of` for the kinds.
        limits: what a reader accepts; exceeding them is an error before anything is written.

    Raises:
        PlanError: a name, value or scalar that cannot be stored; says which.
    """

    __slots__ = ("limits", "metadata", "scalars", "tensors")

    def __init__(
        self,
        tensors: Mapping[str, Any] | Iterable[Tensor],
        *,
        metadata: Mapping[str, str] | None = None,
        scalars: Mapping[str, ScalarLike] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.tensors = tuple(_tensors(tensors))
        self.metadata = dict(metadata or {})
        self.scalars = {key: _scalar(key, value) for key, value in (scalars or {}).items()}
        self.limits = limits
        for pair in self.metadata.items():
            if not all(isinstance(text, str) for text in pair):
                raise PlanError(f"metadata is text to text, not {pair[0]!r}: {pair[1]!r}")

    def plan(self) -> Plan:
        """Lay the pack out. Touches no data and calls no provider (C91).

        Raises:
            PlanError: two tensors of one name; a length that contradicts shape and dtype.
            LimitError: more than a reader accepts (`Limits`).
            MetadataSerializationError: a name or text that is not valid Unicode.
        """
        if len(self.tensors) > self.limits.tensors:
            raise LimitError(f"{len(self.tensors)} tensors; the limit is {self.limits.tensors}")
        entries: list[Entry] = []
        names: set[str] = set()
        end = 0
        for tensor in self.tensors:
            tensor.check()
            if tensor.nbytes > self.limits.tensor_bytes:
                raise LimitError(
                    f"tensor {tensor.name!r} has {tensor.nbytes} bytes; "
                    f"the limit is {self.limits.tensor_bytes}"
                )
            if tensor.name in names:
                raise PlanError(f"two tensors are named {tensor.name!r}")
            names.add(tensor.name)
            start = aligned(end)
            end = start + tensor.nbytes
            entries.append(
                Entry(tensor.name, tensor.dtype, tensor.shape, start, end, tensor.param_id)
            )
        blob = Metadata.encode(entries, self.metadata, self.scalars)
        if len(blob) > self.limits.metadata:
            raise LimitError(f"{len(blob)} bytes of metadata; the limit is {self.limits.metadata}")
        if len(blob) >= 1 << 32:
            raise MetadataSerializationError(f"{len(blob)} bytes of metadata do not fit in 32 bits")
        header = Header(len(blob))
        start = header.data_start
        size = start + end
        if size > self.limits.file_bytes:
            raise LimitError(f"{size} bytes in all; the limit is {self.limits.file_bytes}")
        front = header.encode() + blob
        padding = bytes(start - HEADER_SIZE - len(blob))
        return Plan(tuple(entries), front + padding, size, self.tensors)


def _tensors(tensors: Mapping[str, Any] | Iterable[Tensor]) -> Iterator[Tensor]:
    if not isinstance(tensors, Mapping):
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise PlanError(
                    f"expected bpk_lite.Tensor values or a mapping from name to array, "
                    f"not {type(tensor).__name__}"
                )
            yield tensor
        return
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise PlanError(f"a tensor's name is text, not {name!r}")
        if isinstance(value, Tensor):
            yield value if value.name == name else value.replace(name=name)
            continue
        try:
            yield Tensor.from_array(name, value)
        except (TypeError, BufferError) as error:
            raise PlanError(f"tensor {name!r}: {error}") from error


def _scalar(key: Any, value: ScalarLike) -> Scalar:
    if not isinstance(key, str):
        raise PlanError(f"a scalar's name is text, not {key!r}")
    try:
        return Scalar.of(value)
    except (TypeError, ValueError) as error:
        raise PlanError(f"scalar {key!r}: {error}") from error
