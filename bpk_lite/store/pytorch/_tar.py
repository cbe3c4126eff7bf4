"""Checkpoints from before PyTorch 0.1.10: a tar of storages, tensors and a pickle (S129, S130)."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from bpk_lite.pack import BytesSource, FormatError, MetadataDeserializationError
from bpk_lite.store._errors import PickleError
from bpk_lite.store.pytorch._calls import call, storage_reference
from bpk_lite.store.pytorch._legacy import RawStorage, check_order
from bpk_lite.store.pytorch._machine import load
from bpk_lite.store.pytorch._stream import SourceStream
from bpk_lite.store.pytorch._values import Global, StorageValue, TensorValue, short

if TYPE_CHECKING:
    from bpk_lite.pack import ByteSource

__all__ = ["TarArchive"]

_MAX_RANK = 64
_MAX_COUNT = 1_000_000


class TarArchive:
    """An open archive.

    Attributes:
        root: the saved object.
        data_size: bytes of all storages.
    """

    def __init__(self, source: ByteSource) -> None:
        import tarfile

        self._name = source.name
        self._storages: dict[str, RawStorage] = {}
        self._views: dict[str, StorageValue] = {}
        try:
            with tarfile.open(fileobj=io.BufferedReader(SourceStream(source)), mode="r:") as tar:
                parts = {
                    member.name: (member.offset_data, member.size)
                    for member in tar
                    if member.isfile()
                }
        except (tarfile.TarError, ValueError, OSError, EOFError) as error:
            raise MetadataDeserializationError(
                f"{self._name}: the tar is broken: {error}"
            ) from error
        missing = [part for part in ("storages", "tensors", "pickle") if part not in parts]
        if missing:
            raise FormatError(
                f"{self._name}: not a PyTorch checkpoint: the tar has no {' and no '.join(missing)}"
            )
        streams = {
            part: io.BytesIO(source.read_at(*parts[part])) for part in parts if part != "storages"
        }
        if "sys_info" in streams:
            check_order(load(streams["sys_info"], storages=False), self._name)
        self._read_storages(source, *parts["storages"])
        tensors = self._read_tensors(streams["tensors"])
        self.root = _resolved(streams["pickle"], tensors)
        self.data_size = sum(s.count * s.size for s in self._storages.values())

    def storage(self, value: StorageValue) -> RawStorage:
        """Return the bytes of a storage."""
        return self._storages[value.key]

    def _read_storages(self, source: ByteSource, start: int, size: int) -> None:
        part = BytesSource(source.read_at(start, size), self._name)
        stream = io.BufferedReader(SourceStream(part))
        for _ in range(self._count(load(stream, storages=False))):
            key, _location, kind = self._triple(load(stream, storages=False))
            counted = _number(stream, 8)
            value = storage_reference(("storage", kind, key, None, counted, None))
            width = value.dtype.itemsize if value.dtype is not None else 1
            assert width is not None
            position = stream.tell()
            if position + counted * width > part.size:
                raise PickleError(f"storage {value.key!r} extends beyond the end of the file")
            self._views[value.key] = value
            self._storages[value.key] = RawStorage(
                part, value.key, position, counted, width, counted
            )
            stream.seek(position + counted * width)
        views = load(stream, storages=False)
        for view in views if isinstance(views, list) else []:
            if (
                not isinstance(view, tuple)
                or len(view) != 4
                or not all(isinstance(one, str | int) for one in view[:2])
                or str(view[1]) not in self._views
            ):
                raise FormatError(f"{self._name}: a view of a storage is malformed: {short(view)}")
            key, root, offset, count = view
            base = self._views[str(root)]
            if (
                type(offset) is not int
                or type(count) is not int
                or not (0 <= offset <= offset + count <= base.count)
            ):
                raise FormatError(
                    f"{self._name}: view {short(key)} lies outside of storage {short(root)}"
                )
            self._views[str(key)] = replace(base, offset=offset, length=count)

    def _read_tensors(self, stream: IO[bytes]) -> dict[str, TensorValue]:
        found = {}
        for _ in range(self._count(load(stream, storages=False))):
            key, storage_key, _kind = self._triple(load(stream, storages=False))
            storage = self._views.get(str(storage_key))
            if storage is None:
                raise FormatError(f"{self._name}: tensor {short(key)} lies in no known storage")
            rank = _number(stream, 4)
            if not 0 <= rank <= _MAX_RANK:
                raise FormatError(f"{self._name}: tensor {short(key)} has rank {rank}")
            stream.read(4)  # padding
            numbers = [_number(stream, 8) for _ in range(2 * rank + 1)]
            shape, strides, offset = numbers[:rank], numbers[rank:-1], numbers[-1]
            made = call(
                Global("torch._utils", "_rebuild_tensor"),
                (storage, offset, tuple(shape), tuple(strides)),
            )
            found[str(key)] = made
        return found

    def _count(self, value: Any) -> int:
        if type(value) is not int or not 0 <= value <= _MAX_COUNT:
            raise FormatError(
                f"{self._name}: a count is {short(value)}, expected 0 to {_MAX_COUNT}"
            )
        return value

    def _triple(self, value: Any) -> tuple[Any, Any, Any]:
        if (
            not isinstance(value, tuple)
            or len(value) != 3
            or not all(isinstance(one, str | int | Global | None) for one in value)
        ):
            raise FormatError(
                f"{self._name}: a description is {short(value)}, expected three values"
            )
        return value


def _number(stream: IO[bytes], size: int) -> int:
    raw = stream.read(size)
    if len(raw) != size:
        raise PickleError("the archive ends where a number should be")
    return int.from_bytes(raw, "little", signed=True)


def _resolved(stream: IO[bytes], tensors: dict[str, TensorValue]) -> Any:
    """Return the object of the pickle, whose persistent ids name tensors."""

    def find(reference: Any) -> TensorValue:
        found = tensors.get(str(reference)) if isinstance(reference, str | int) else None
        if found is None:
            raise PickleError(f"the pickle refers to tensor {short(reference)}, which is not there")
        return found

    return load(stream, resolve=find)
