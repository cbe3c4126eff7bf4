"""The three record types. They differ in what they may hold and in who makes and takes them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from bpk_lite._door import inspector
from bpk_lite.pack import Limits, Plan, Reader, Scalar, Tensor, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.pack import Progress

__all__ = ["LrSchedulerRecord", "ModuleRecord", "OptimizerRecord", "Record"]

_DEFAULT = Limits()


class Record:
    """The content of a pack: tensors in file order, scalars and metadata.

    A record that was loaded and is saved unchanged is the same file, byte for byte, whatever order
    its data have (Burn sorts them by name, R13). Loading is lazy: tensors are windows of the file,
    which stays open, and gives its old content also after it has been replaced.

    Attributes:
        tensors: name to tensor, in the order of their data.
        scalars: name to typed scalar.
        metadata: text to text.
    """

    __slots__ = ("metadata", "scalars", "tensors")

    def __init__(
        self,
        tensors: Iterable[Tensor] = (),
        *,
        scalars: Mapping[str, Scalar] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self.tensors: Mapping[str, Tensor] = MappingProxyType({t.name: t for t in tensors})
        self.scalars: Mapping[str, Scalar] = MappingProxyType(dict(scalars or {}))
        self.metadata: Mapping[str, str] = MappingProxyType(dict(metadata or {}))

    @classmethod
    def from_pack(cls, pack: Reader) -> Self:
        """Return the record that an open pack holds. Reads no data; keep the pack open."""
        return cls(pack.tensors(order="data"), scalars=pack.scalars, metadata=pack.metadata)

    @classmethod
    def from_bytes(cls, buffer: Any, *, limits: Limits = _DEFAULT) -> Self:
        """Return the record in a buffer, which is kept and not copied (R2).

        Raises:
            FormatError: not a pack, or a broken one.
        """
        return cls.from_pack(Reader.from_bytes(buffer, limits=limits))

    @classmethod
    def load(cls, path: Any, *, limits: Limits = _DEFAULT) -> Self:
        """Return the record in a file; ``.bpk`` is appended where it must be (R3).

        Raises:
            ReadError: the file cannot be read.
            FormatError: not a pack, or a broken one.
        """
        return cls.from_pack(Reader.from_file(path, limits=limits))

    def plan(self) -> Plan:
        """Return the record as a plan, laid out and not written.

        Raises:
            PlanError, LimitError: see `Writer.plan`.
        """
        return Writer(self.tensors.values(), metadata=self.metadata, scalars=self.scalars).plan()

    def into_bytes(self) -> bytes:
        """Return the record as a pack in memory."""
        return self.plan().into_bytes()

    def save(
        self,
        path: Any,
        *,
        overwrite: bool = True,
        durable: bool = True,
        progress: Progress | None = None,
    ) -> str:
        """Write the record to a file, atomically (R4); return the path with its extension.

        Arguments as for `Plan.write_to_file`.

        Raises:
            WriteError, AlreadyExists: see `Plan.write_to_file`.
        """
        return self.plan().write_to_file(
            path, overwrite=overwrite, durable=durable, progress=progress
        )

    def __len__(self) -> int:
        """Return the number of tensors; a record of plain SGD is empty in that sense (R49)."""
        return len(self.tensors)

    def __bool__(self) -> bool:
        return True  # an empty record is a record

    def __eq__(self, other: object) -> bool:
        """Compare kind and content: tensors with their ids and bytes, scalars, metadata."""
        if type(self) is not type(other) or not isinstance(other, Record):
            return NotImplemented
        return (
            self.scalars == other.scalars
            and self.metadata == other.metadata
            and self.tensors.keys() == other.tensors.keys()
            and all(_same(tensor, other.tensors[name]) for name, tensor in self.tensors.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [f"{len(self)} tensors"]
        parts += [f"{len(self.scalars)} scalars"] if self.scalars else []
        return f"<{type(self).__name__}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: made of metadata alone, nothing is read."""
        return str(inspector().html(self))


def _same(one: Tensor, other: Tensor) -> bool:
    return (one.dtype, one.shape, one.param_id) == (other.dtype, other.shape, other.param_id) and (
        one.buffer() == other.buffer()
    )


class ModuleRecord(Record):
    """A module's params by path, each with its id (R11). Made by ``module.into_record()``.

    ``record["fc.weight"]`` is a tensor.
    """

    __slots__ = ()

    def __getitem__(self, path: str) -> Tensor:
        return self.tensors[path]


class OptimizerRecord(Record):
    """An optimizer's state by param id (R43 to R46). Made by ``optimizer.into_record()``."""

    __slots__ = ()


class LrSchedulerRecord(Record):
    """A scheduler's state, scalars only (R62). Made by ``scheduler.into_record()``."""

    __slots__ = ()
