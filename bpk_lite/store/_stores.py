"""The three stores (S47 to S109)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from bpk_lite._door import desktop
from bpk_lite.pack import Layout, Limits, Reader, Writer
from bpk_lite.store._adapters import Adapter, PyTorchToBurnAdapter
from bpk_lite.store._base import Store
from bpk_lite.store._errors import StoreError
from bpk_lite.store._safetensors import SafetensorsFile, SafetensorsPlan
from bpk_lite.store.pytorch import PytorchReader

if TYPE_CHECKING:
    from bpk_lite.pack import Progress, Tensor
    from bpk_lite.store._target import Target

__all__ = ["BurnpackStore", "PytorchStore", "SafetensorsStore"]


_TO_BURN = PyTorchToBurnAdapter()


@dataclass(frozen=True, kw_only=True)
class BurnpackStore(Store):
    """Burn's own format. Parameter ids are kept.

    ``BurnpackStore(source="net.bpk", overwrite=True).collect_from(net)``. A set but empty filter
    matches nothing here (S53). Remapping applies to reading only (S58).

    Attributes:
        auto_extension: append ``.bpk`` to a name without extension.
    """

    FORMAT: ClassVar[str] = "burnpack"
    EMPTY_FILTER_MEANS_ALL: ClassVar[bool] = False

    auto_extension: bool = True

    @classmethod
    def from_static(cls, package: str, resource: str) -> Self:
        """Return a store of a pack that is part of an installed package."""
        source = Reader.from_static(package, resource).source
        return cls(source=source.read_at(0, source.size))

    def zero_copy(self, flag: bool) -> Self:
        """Do nothing: reading never copies. Burn had this option until 0.21 (S55)."""
        return self

    def _read(self) -> list[Tensor]:
        if self._in_memory:
            pack = Reader.from_bytes(self._buffer())
        else:
            pack = Reader.from_file(self._reading_path(), exact=not self.auto_extension)
        self._cell.open = pack
        return pack.tensors()

    def _reading_path(self) -> Any:
        """Return the file that was or would be written, if it is there; else the one that is."""
        if not self.auto_extension or "://" in str(self.source):
            return self.source
        written = desktop().writing_path(self.source)
        return written if written.exists() else self.source

    def _plan(self, tensors: list[Tensor]) -> Layout:
        return Writer(tensors, metadata=self._written_metadata()).plan()

    @property
    def _extension(self) -> bool:
        return self.auto_extension


@dataclass(frozen=True, kw_only=True)
class SafetensorsStore(Store):
    """SafeTensors. Parameter ids are not kept; paths are taken exactly (S76).

    Remapping applies to writing too (S82). A file that PyTorch's libraries wrote (``format`` is
    ``pt`` in its metadata) fills a module of PyTorch as it is.
    """

    FORMAT: ClassVar[str] = "safetensors"

    def _read(self) -> list[Tensor]:
        if self._in_memory:
            file = SafetensorsFile.from_bytes(self._buffer())
        else:
            file = SafetensorsFile(desktop().open_source(self.source, limits=Limits(), exact=True))
        self._cell.open = file
        return list(file.values())

    def _adapter_for(self, target: Target) -> Adapter:
        of_torch = target.own_indices and self._cell.open.metadata.get("format") == "pt"
        if of_torch and self.from_adapter.without_layout() is self.from_adapter:
            return _TO_BURN.chain(self.from_adapter)
        return self.from_adapter

    def _plan(self, tensors: list[Tensor]) -> Layout:
        renamed, _ = self.remap.remap(tensors)
        return SafetensorsPlan.of(renamed, self._written_metadata())


@dataclass(frozen=True, kw_only=True)
class PytorchStore(Store):
    """PyTorch checkpoints, for reading (S100 to S109), from bytes too.

    Weights are brought into Burn's layout always (S151). Variant names are left out of paths, and
    list indices are numbered without gaps, by default (S102). A module of PyTorch has the file's
    gaps itself: there they stay.

    Attributes:
        top_level_key: one entry of the root to look into.
    """

    FORMAT: ClassVar[str] = "pytorch"

    skip_enum_variants: bool = True
    map_indices_contiguous: bool | None = None  # None: yes, but not for modules of PyTorch
    top_level_key: str | None = None

    def with_top_level_key(self, key: str) -> Self:
        """Look into one entry of the root."""
        return self._with(top_level_key=key)

    def collect_from(self, module: Any, *, progress: Progress | None = None) -> str | bytes:
        """Refuse: this store is read-only.

        Raises:
            StoreError: always.
        """
        raise StoreError(
            "saving PyTorch checkpoints is not supported by the store; `bpk convert` writes state "
            "dicts for torch.load"
        )

    def _read(self) -> list[Tensor]:
        key = self.top_level_key
        if self._in_memory:
            reader = PytorchReader.from_bytes(self._buffer(), top_level_key=key)
        else:
            reader = PytorchReader.from_file(self.source, top_level_key=key)
        self._cell.open = reader
        return list(reader.values())

    def _unreadable(self) -> str:
        reasons = self._cell.open.unsupported.items()
        return "".join(f"\n{name!r} cannot be read: {reason}" for name, reason in reasons)

    @property
    def _maps_indices(self) -> bool:
        return self.map_indices_contiguous is not False

    def _adapter_for(self, target: Target) -> Adapter:
        return _TO_BURN
