"""Checkpoints of PyTorch 0.1.10 to 1.5: pickles, then raw storages (S124 to S128)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpk_lite.pack import FormatError, MetadataDeserializationError, TruncatedError
from bpk_lite.store._errors import PickleError
from bpk_lite.store.pytorch._machine import load
from bpk_lite.store.pytorch._stream import SourceStream
from bpk_lite.store.pytorch._values import Opaque, StorageValue, TensorValue, children, short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpk_lite.pack import ByteSource

__all__ = ["MAGIC", "LegacyArchive", "RawStorage", "check_order"]

MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_COUNT = 8


@dataclass(slots=True)
class RawStorage:
    """A storage that lies in the file as its elements' bytes.

    Attributes:
        source: the file.
        key: of the storage.
        start: offset of the bytes; None where the file does not list the storage.
        count: elements that the pickle declares.
        size: bytes of an element.
        counted: elements that the file itself counts, just before the bytes.
    """

    source: ByteSource
    key: str
    start: int | None
    count: int
    size: int
    counted: int

    @property
    def big_endian(self) -> bool:
        """Never; such files are refused."""
        return False

    def read(self, offset: int, length: int, *, whole: bool) -> memoryview:
        """Return a range of the bytes; there is no checksum.

        Raises:
            FormatError: the storage is not in the file, or its count contradicts the pickle.
        """
        if self.start is None:
            raise FormatError(f"{self.source.name}: storage {self.key!r} is not in the file")
        if self.counted != self.count:
            raise MetadataDeserializationError(
                f"{self.source.name}: storage {self.key!r} holds {self.counted} elements but the "
                f"pickle declares {self.count}"
            )
        return self.source.read_at(self.start + offset, length)


class LegacyArchive:
    """An open file.

    Attributes:
        root: the saved object.
        data_size: bytes of all storages.
    """

    def __init__(self, source: ByteSource) -> None:
        stream = io.BufferedReader(SourceStream(source), 1 << 16)
        name = source.name
        if load(stream, storages=False) != MAGIC:
            raise FormatError(f"{name}: not a PyTorch checkpoint: the magic number is wrong")
        version = load(stream, storages=False)
        if version != _PROTOCOL:
            raise FormatError(
                f"{name}: legacy protocol {short(version)}; only {_PROTOCOL} is known"
            )
        check_order(load(stream, storages=False), name)
        self.root = load(stream)
        keys = load(stream, storages=False)
        if not isinstance(keys, list) or not all(isinstance(key, str | int) for key in keys):
            raise FormatError(f"{name}: the list of storages is no list of keys")
        self._storages = _declared(self.root, source)
        position = stream.tell()
        for key in map(str, keys):
            storage = self._storages.get(key)
            if storage is None:
                raise FormatError(
                    f"{name}: storage {short(key)} is listed, but nothing refers to it"
                )
            end = position + _COUNT + storage.count * storage.size
            if end > source.size:
                raise TruncatedError(
                    f"{name}: storage {key!r} extends beyond the end of the file, to {end} of "
                    f"{source.size}; was the save interrupted?"
                )
            counted = bytes(source.read_at(position, _COUNT))
            storage.counted = int.from_bytes(counted, "little", signed=True)
            storage.start = position + _COUNT
            position = end
        self.data_size = sum(
            s.count * s.size for s in self._storages.values() if s.start is not None
        )

    def storage(self, value: StorageValue) -> RawStorage:
        """Return the bytes of a storage; whether they are there shows when they are read."""
        return self._storages[value.key]


def check_order(info: Any, name: str) -> None:
    """Check that the system info says little-endian (S125).

    PyTorch's own writer turned elements to little-endian on any machine while saying the machine's
    order here, so what the elements of a file that says big are is anyone's guess.
    """
    little = info.get("little_endian") if isinstance(info, dict) else None
    if not isinstance(little, bool):
        raise FormatError(f"{name}: the system info has no little_endian bool")
    if not little:
        raise FormatError(f"{name}: Big-endian checkpoints of this age are not read")


def _declared(root: Any, source: ByteSource) -> dict[str, RawStorage]:
    """Return the storages that the object refers to, by key (S126)."""
    found: dict[str, RawStorage] = {}
    for value in _storages(root):
        size = 1 if value.dtype is None else value.dtype.itemsize
        if size is None or (value.dtype is None and value.kind != "UntypedStorage"):
            size = _SIZES.get(value.kind, 1)
        known = found.get(value.key)
        if known is not None and (known.count, known.size) != (value.count, size):
            raise PickleError(f"storage {value.key!r} is declared with two sizes")
        found[value.key] = RawStorage(source, value.key, None, value.count, size, -1)
    return found


# elements of storages that Burn has no type for; their bytes must be passed over all the same
_SIZES = {"ComplexFloatStorage": 8, "ComplexDoubleStorage": 16, "QInt32Storage": 4}


def _storages(root: Any) -> Iterator[StorageValue]:
    """Yield every storage below an object, each value looked at once."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        value = pending.pop()
        if isinstance(value, StorageValue):
            yield value
        elif isinstance(value, TensorValue):
            yield value.storage
        elif id(value) not in seen and isinstance(value, dict | list | tuple | Opaque):
            seen.add(id(value))
            pending += children(value)
