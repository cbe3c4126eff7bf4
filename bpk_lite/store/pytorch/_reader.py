"""Open a checkpoint of any kind and list its tensors (S116, S138, S139, S147, S154)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from bpk_lite._door import desktop
from bpk_lite.pack import (
    BytesSource,
    FormatError,
    InvalidMagicNumber,
    LimitError,
    Limits,
    Tensor,
    looks_like,
)
from bpk_lite.store._errors import StoreError, UnsupportedDType
from bpk_lite.store.pytorch._data import tensor_of
from bpk_lite.store.pytorch._flatten import items, leaves
from bpk_lite.store.pytorch._legacy import MAGIC, LegacyArchive
from bpk_lite.store.pytorch._machine import load
from bpk_lite.store.pytorch._tar import TarArchive
from bpk_lite.store.pytorch._values import TensorValue, Unsupported, type_name
from bpk_lite.store.pytorch._zip import ZipArchive

if TYPE_CHECKING:
    from bpk_lite.pack import ByteSource

__all__ = ["CheckpointInfo", "PytorchReader", "open_root"]

Kind = Literal["zip", "legacy", "tar", "pickle"]
_DEFAULT = Limits()


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """Facts about a checkpoint (S154).

    Attributes:
        kind: ``"zip"``, ``"legacy"``, ``"tar"`` or ``"pickle"``.
        big_endian: byte order of the storages.
        version: the zip's ``version``, or None.
        format_version: the zip's ``.format_version``, or None.
        storage_alignment: whether the zip says how it aligns storages.
        data_size: bytes of all storages.
    """

    kind: Kind
    big_endian: bool = False
    version: str | None = None
    format_version: str | None = None
    storage_alignment: bool = False
    data_size: int = 0


class PytorchReader(Mapping[str, Tensor]):
    """A checkpoint: a mapping from name to tensor, sorted by name.

    Nothing in the file is imported or called. Opening parses the pickle; a tensor's bytes are read
    when it is used, without a copy where they lie in order. Tensors of types that Burn lacks raise
    `UnsupportedDType` when asked for; `unsupported` names them and objects with tensors inside.

    Attributes:
        info: facts about the file.
        unsupported: name to reason, for what holds tensors and cannot be given.
    """

    __slots__ = ("_archive", "_source", "_values", "info", "root", "unsupported")

    def __init__(
        self,
        source: ByteSource,
        *,
        top_level_key: str | None = None,
        limits: Limits = _DEFAULT,
    ) -> None:
        """Open a source, which belongs to the reader from then on.

        Args:
            source: the file.
            top_level_key: one entry of the root to look into, taken literally (S139).
            limits: the largest tensor to accept.

        Raises:
            InvalidMagicNumber: not a checkpoint; says what it looks like.
            FormatError: a broken one; the subclass says what.
            StoreError: no such key, or a root that holds no tensors by name.
            NameCollision: two paths give one name.
        """
        self._source = source
        try:
            self.root, self._archive, self.info = open_root(source)
            chosen = _under(self.root, top_level_key, source.name)
            found, refused = leaves(chosen)
        except BaseException:
            source.close()
            raise
        self.unsupported: dict[str, str] = dict(refused)
        self._values: dict[str, TensorValue] = {}
        for name, value in sorted(found.items()):
            if isinstance(value, Unsupported):
                self.unsupported[name] = value.reason
            else:
                _check_size(name, value, limits)
                self._values[name] = value

    @classmethod
    def from_bytes(
        cls, buffer: Any, *, top_level_key: str | None = None, limits: Limits = _DEFAULT
    ) -> Self:
        """Open a checkpoint in memory; the buffer is kept. Raises as the constructor does."""
        return cls(BytesSource(buffer), top_level_key=top_level_key, limits=limits)

    @classmethod
    def from_file(
        cls, path: Any, *, top_level_key: str | None = None, limits: Limits = _DEFAULT
    ) -> Self:
        """Open a checkpoint in a file, by its exact path. Raises ReadError, and as above."""
        source = desktop().open_source(path, limits=limits, exact=True)
        return cls(source, top_level_key=top_level_key, limits=limits)

    def __getitem__(self, name: str) -> Tensor:
        if name in self.unsupported and name not in self._values:
            raise UnsupportedDType(
                f"{self._source.name}: {name!r} cannot be read: {self.unsupported[name]}"
            )
        value = self._values[name]
        return tensor_of(name, value, self._archive.storage(value.storage))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def close(self) -> None:
        """Release the source. Arrays that were taken stay valid."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _NoStorages:
    """A plain pickle has no storages."""

    def storage(self, value: Any) -> Any:
        raise FormatError(f"storage {value.key!r}: a plain pickle has none")


def open_root(source: ByteSource) -> tuple[Any, Any, CheckpointInfo]:
    """Return the saved object, where its storages are, and facts, by the first bytes (S116)."""
    head = bytes(source.read_at(0, min(source.size, 512)))
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        zipped = ZipArchive(source)
        info = CheckpointInfo(
            "zip",
            zipped.big_endian,
            zipped.texts.get("version"),
            zipped.texts.get(".format_version"),
            ".storage_alignment" in zipped.texts,
            zipped.data_size,
        )
        return load(io.BytesIO(zipped.pickle)), zipped, info
    if head[257:262] == b"ustar":
        tar = TarArchive(source)
        return tar.root, tar, CheckpointInfo("tar", data_size=tar.data_size)
    binary, text = MAGIC.to_bytes(10, "little"), str(MAGIC).encode()
    if binary in head[:64] or text in head[:64]:
        legacy = LegacyArchive(source)
        return legacy.root, legacy, CheckpointInfo("legacy", data_size=legacy.data_size)
    if head[:1] in (b"\x80", b"(", b"}", b"]", b"c") and not _like_safetensors(head):
        if source.size > _MAX_PICKLE:
            raise LimitError(f"{source.name}: a plain pickle of {source.size} bytes is refused")
        blob = io.BytesIO(source.read_at(0, source.size))
        return load(blob, storages=False), _NoStorages(), CheckpointInfo("pickle")
    raise InvalidMagicNumber(
        f"{source.name}: not a PyTorch checkpoint; it is {looks_like(head, source.size)}"
    )


_MAX_PICKLE = 100 << 20


def _like_safetensors(head: bytes) -> bool:
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= 100_000_000


def _under(root: Any, key: str | None, name: str) -> Any:
    """Return the part of the root to list (S139)."""
    if key is None:
        if items(root) is None:
            raise StoreError(
                f"{name}: expected a dictionary or list at the root of the PyTorch file, "
                f"found {type_name(root)}"
            )
        return root
    entries = items(root)
    if entries is None or isinstance(root, list | tuple):
        raise StoreError(
            f"{name}: top-level key {key!r}: the root of the PyTorch file is no dictionary, "
            f"found {type_name(root)}"
        )
    by_text = {str(one): value for one, value in entries}
    if key not in by_text:
        raise StoreError(
            f"{name}: top-level key {key!r} not found; there are {', '.join(sorted(by_text))}"
        )
    if items(by_text[key]) is None:
        raise StoreError(
            f"{name}: top-level key {key!r} does not hold a dictionary, found "
            f"{type_name(by_text[key])}"
        )
    return by_text[key]


def _check_size(name: str, value: TensorValue, limits: Limits) -> None:
    size = value.dtype.itemsize
    assert size is not None
    for dim in value.shape:
        size *= dim
    if size > limits.tensor_bytes:
        raise LimitError(
            f"tensor {name!r} would have {size} bytes; the byte limit is {limits.tensor_bytes}"
        )
