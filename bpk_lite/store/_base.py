"""What all stores share: options as values, a listing that is made once, strict loading.

A store is a frozen value. A path means a file, bytes mean memory, nothing means memory that is to
be written. Every builder method of Burn's returns a changed copy.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from bpk_lite._version import __version__
from bpk_lite.store._adapters import Adapter, IdentityAdapter
from bpk_lite.store._apply import ApplyPlan, collect
from bpk_lite.store._errors import ApplyError, StoreError
from bpk_lite.store._filter import PathFilter, Predicate
from bpk_lite.store._remap import KeyRemapper, map_indices_contiguous_except
from bpk_lite.store._target import target_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpk_lite.pack import Layout, Progress, Tensor
    from bpk_lite.store._result import ApplyResult
    from bpk_lite.store._target import Target

__all__ = ["Store", "load_from", "save_into"]


@dataclass(slots=True)
class _Cell:
    """What a frozen store remembers: its listing, and what it wrote to memory."""

    listing: dict[str, Tensor] | None = None
    written: bytes | None = None
    open: Any = None


@dataclass(frozen=True)
class Store:
    """Options that every store has. See the subclasses.

    Attributes:
        source: a path, a buffer, or None for memory that is to be written.
        filter: which params to write or to fill; None for all.
        remap: new names for what is read.
        validate: whether tensors that do not fit are an error.
        allow_partial: whether params without a tensor are left as they are.
        skip_enum_variants: leave variant names out of the module's paths.
        map_indices_contiguous: number lists without gaps when reading; None for the default.
        keep_indices: patterns of list prefixes whose indices stay (S172).
        from_adapter: what to make of tensors that are read.
        to_adapter: what to make of params that are written.
        metadata: what to write beside the tensors; None for the defaults.
        overwrite: replace an existing file.
    """

    FORMAT: ClassVar[str] = ""
    EMPTY_FILTER_MEANS_ALL: ClassVar[bool] = True

    source: Any = None
    _: KW_ONLY
    filter: PathFilter | None = None
    remap: KeyRemapper = field(default_factory=KeyRemapper)
    validate: bool = True
    allow_partial: bool = False
    skip_enum_variants: bool = False
    map_indices_contiguous: bool | None = None
    keep_indices: tuple[str, ...] = ()
    from_adapter: Adapter = field(default_factory=IdentityAdapter)
    to_adapter: Adapter = field(default_factory=IdentityAdapter)
    metadata: Mapping[str, str] | None = None
    overwrite: bool = False
    _cell: _Cell = field(default_factory=_Cell, init=False, repr=False, compare=False)

    # -- what subclasses give

    def _read(self) -> list[Tensor]:
        """Return the tensors of the file, under the file's names."""
        raise NotImplementedError

    def _plan(self, tensors: list[Tensor]) -> Layout:
        """Return the file to write."""
        raise NotImplementedError

    # -- listing

    def get_all_tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, sorted, remapped but not filtered (S38 to S43). Lazy.

        Raises:
            FormatError, ReadError: the file; noticed here, not when the store is made (S44).
            NameCollision: remapping gives two tensors one name.
        """
        if self._cell.listing is None:
            self._cell.listing = self._listed(self._maps_indices)
        return dict(self._cell.listing)

    def keys(self) -> list[str]:
        """Return the names, sorted."""
        return list(self.get_all_tensors())

    def get_tensor(self, name: str) -> Tensor | None:
        """Return a tensor by its new name, or None."""
        return self.get_all_tensors().get(name)

    def _listed(self, contiguous: bool) -> dict[str, Tensor]:
        tensors, _ = self.remap.remap(self._read())
        if contiguous:
            tensors, _ = map_indices_contiguous_except(tensors, self.keep_indices)
        return {tensor.name: tensor for tensor in sorted(tensors, key=lambda t: t.name)}

    # -- modules

    def apply_to(self, module: Any) -> ApplyResult:
        """Fill a module: all of it or, where it does not fit, nothing.

        Args:
            module: of `bpk_lite.nn` or PyTorch.

        Returns:
            What was applied and what was not; print it.

        Raises:
            ApplyError: tensors do not fit (and `validate`), or params have no tensor (and not
                `allow_partial`). The module is unchanged; the error has the result.
            FormatError, ReadError, NameCollision: see `get_all_tensors`.
        """
        target = target_of(module)
        if target.own_indices and self.map_indices_contiguous is None:
            tensors = self._listed(contiguous=False)  # the module has the file's own gaps (S174)
        else:
            tensors = self.get_all_tensors()
        plan = ApplyPlan.of(
            target, tensors.values(), self._applied_filter, self._adapter_for(target),
            self.skip_enum_variants,
        )  # fmt: skip
        result = plan.result
        if self.validate and result.errors:
            raise ApplyError(f"{self}: tensors do not fit; nothing was applied\n{result}", result)
        if result.missing and not self.allow_partial:
            raise ApplyError(
                f"{self}: params without a tensor; nothing was applied. allow_partial=True leaves "
                f"them as they are{self._unreadable()}\n{result}",
                result,
            )
        plan.commit()
        return result

    def collect_from(self, module: Any, *, progress: Progress | None = None) -> str | bytes:
        """Write a module: to the file, atomically, or to bytes.

        Args:
            module: what to write.
            progress: for a file, called as ``progress(name, done_bytes, total_bytes)``.

        Returns:
            The path that was written, or the bytes; `get_bytes` has them too.

        Raises:
            AlreadyExists: the file exists and `overwrite` is False.
            PlanError, WriteError, NameCollision, UnsupportedDType: see `Layout` and `collect`.
        """
        plan = self._plan(
            collect(module, self._applied_filter, self.to_adapter, self.skip_enum_variants)
        )
        self._cell.listing = None
        if self._in_memory:
            self._cell.written = plan.into_bytes()
            return self._cell.written
        return plan.write_to_file(
            self.source,
            overwrite=self.overwrite,
            extension=self._extension,
            progress=progress,
        )

    def get_bytes(self) -> bytes:
        """Return what was given or written in memory.

        Raises:
            StoreError: a store of a file, or nothing was written yet.
        """
        if not self._in_memory:
            raise StoreError(f"{self} is a file; read it")
        blob = self._cell.written if self._cell.written is not None else self.source
        if blob is None:
            raise StoreError(f"{self}: nothing was written yet")
        return bytes(blob)

    def _unreadable(self) -> str:
        """Return a line for each tensor that the file has and that cannot be read."""
        return ""

    @property
    def _in_memory(self) -> bool:
        return not (isinstance(self.source, str) or hasattr(self.source, "__fspath__"))

    @property
    def _extension(self) -> bool:
        return False

    @property
    def _maps_indices(self) -> bool:
        return bool(self.map_indices_contiguous)

    def _adapter_for(self, target: Target) -> Adapter:
        return self.from_adapter

    @property
    def _applied_filter(self) -> PathFilter | None:
        if self.filter is not None and self.filter.is_empty and self.EMPTY_FILTER_MEANS_ALL:
            return None
        return self.filter

    def _buffer(self) -> Any:
        blob = self._cell.written if self._cell.written is not None else self.source
        if blob is None:
            raise StoreError(f"{self}: there is nothing to read; nothing was written yet")
        return blob

    def __str__(self) -> str:
        return f"{type(self).__name__}({'<bytes>' if self._in_memory else str(self.source)})"

    # -- Burn's builder names; each returns a changed copy

    @classmethod
    def from_file(cls, path: Any) -> Self:
        """Return a store of a file."""
        return cls(source=path)

    @classmethod
    def from_bytes(cls, data: Any = None) -> Self:
        """Return a store in memory: of a buffer, or one that is to be written."""
        return cls(source=data)

    def with_filter(self, filter: PathFilter) -> Self:
        """Use this filter."""
        return self._with(filter=filter)

    def with_regex(self, pattern: str) -> Self:
        """Add a pattern to the filter."""
        return self._filtered(lambda given: given.with_regex(pattern))

    def with_regexes(self, patterns: Iterable[str]) -> Self:
        """Add patterns to the filter."""
        return self._filtered(lambda given: given.with_regexes(patterns))

    def with_full_path(self, path: str) -> Self:
        """Add an exact path to the filter."""
        return self._filtered(lambda given: given.with_full_path(path))

    def with_full_paths(self, paths: Iterable[str]) -> Self:
        """Add exact paths to the filter."""
        return self._filtered(lambda given: given.with_full_paths(paths))

    def with_predicate(self, predicate: Predicate) -> Self:
        """Add a function of path and container path to the filter."""
        return self._filtered(lambda given: given.with_predicate(predicate))

    def with_predicates(self, predicates: Iterable[Predicate]) -> Self:
        """Add functions of path and container path to the filter."""
        return self._filtered(lambda given: given.with_predicates(predicates))

    def match_all(self) -> Self:
        """Use the filter that accepts everything."""
        return self._with(filter=PathFilter.all())

    def with_remapper(self, remapper: KeyRemapper) -> Self:
        """Use this remapper."""
        return self._with(remap=remapper)

    def with_key_remapping(self, pattern: str, replacement: str) -> Self:
        """Add a pattern to the remapper."""
        return self._with(remap=self.remap.add_pattern(pattern, replacement))

    with_remap_pattern = with_key_remapping

    def with_from_adapter(self, adapter: Adapter) -> Self:
        """Use this adapter when reading."""
        return self._with(from_adapter=adapter)

    def with_to_adapter(self, adapter: Adapter) -> Self:
        """Use this adapter when writing."""
        return self._with(to_adapter=adapter)

    def with_metadata(self, key: str, value: str) -> Self:
        """Add or replace a metadata entry."""
        given = self.default_metadata() if self.metadata is None else self.metadata
        return self._with(metadata={**given, key: value})

    def clear_metadata(self) -> Self:
        """Drop all metadata, the defaults too."""
        return self._with(metadata={})

    @classmethod
    def default_metadata(cls) -> dict[str, str]:
        """Return the entries that are written by default: format, producer, version (S49)."""
        return {"format": cls.FORMAT, "producer": "bpk_lite", "version": __version__}

    def _written_metadata(self) -> dict[str, str]:
        return dict(self.default_metadata() if self.metadata is None else self.metadata)

    def _with(self, **changes: Any) -> Self:
        """Return a changed copy; it goes on having what was written to memory."""
        made = replace(self, **changes)
        made._cell.written = self._cell.written
        return made

    def _filtered(self, change: Any) -> Self:
        return self._with(filter=change(self.filter or PathFilter()))

    def __post_init__(self) -> None:
        remap: Any = self.remap
        if not isinstance(remap, KeyRemapper):
            object.__setattr__(self, "remap", KeyRemapper(remap))
        keep: Any = self.keep_indices
        object.__setattr__(self, "keep_indices", (keep,) if isinstance(keep, str) else tuple(keep))
        map_indices_contiguous_except([], self.keep_indices)  # a wrong pattern is an error at once


def save_into(module: Any, store: Store) -> str | bytes:
    """Write a module to a store; the same as ``store.collect_from(module)``."""
    return store.collect_from(module)


def load_from(module: Any, store: Store) -> ApplyResult:
    """Fill a module from a store; the same as ``store.apply_to(module)``."""
    return store.apply_to(module)
