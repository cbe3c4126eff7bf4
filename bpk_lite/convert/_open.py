"""Open a file of weights of any known format, by its content."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite._door import desktop
from bpk_lite.convert._contents import SCALARS_KEY, VALUES_KEY, Contents
from bpk_lite.convert._gguf import open_gguf
from bpk_lite.pack import (
    ByteSource,
    BytesSource,
    DType,
    FormatError,
    InvalidMagicNumber,
    LimitError,
    Limits,
    MetadataDeserializationError,
    Reader,
    ReadError,
    Scalar,
    Tensor,
    looks_like,
)
from bpk_lite.store import SafetensorsFile, StoreError
from bpk_lite.store.pytorch import PytorchReader, plain_values
from bpk_lite.store.pytorch._stream import SourceStream

if TYPE_CHECKING:
    from bpk_lite.pack._header import PackLayout

__all__ = ["open_contents"]

_LARGEST_VALUES = 1 << 20
_HEAD = 512
# deflate reaches a ratio of 1000 for zeros, which a small array may well be made of (bug C21)
_LARGE = 64 << 20
_MAX_RATIO = 200


def open_contents(
    source: Any,
    *,
    top_level_key: str | None = None,
    limits: Limits | None = None,
    layout: PackLayout = "aligned",
) -> Contents:
    """Open a pack, SafeTensors, a PyTorch checkpoint, ``.npz``, GGUF, or a sharded model's index.

    Args:
        source: a path, an address, a buffer or a `ByteSource`, which the contents then close. An
            index (``*.safetensors.index.json``) and GGUF need a path.
        top_level_key: one entry of a PyTorch checkpoint to look into.
        limits: what to accept.
        layout: ``"unaligned"`` for packs of Burn 0.19, see `Reader.from_source`.

    Raises:
        ReadError, FormatError: it cannot be read, is of no known format, or is broken.
        StoreError: a checkpoint without tensors by name; an index that points elsewhere.
        DependencyError: GGUF without the ``gguf`` package.
    """
    bounds = limits or Limits()
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        opened: ByteSource = desktop().open_source(source, limits=bounds, backend="read")
    else:
        opened = source if isinstance(source, ByteSource) else BytesSource(source)
    try:
        return _by_content(opened, source, top_level_key, bounds, layout)
    except BaseException:
        opened.close()
        raise


def _by_content(
    opened: ByteSource, given: Any, key: str | None, limits: Limits, layout: PackLayout
) -> Contents:
    head = bytes(opened.read_at(0, min(opened.size, _HEAD)))
    if head.startswith(b"GGUF"):
        return open_gguf(opened, given)
    if head.startswith(b"PK\x03\x04") and _is_npz(opened):
        return _npz(opened)
    if head[8:9] == b"{":
        return _safetensors(SafetensorsFile(opened))
    if head.lstrip()[:1] == b"{":
        return _index(opened, given)
    if head.startswith((b"PK", b"\x80", b"(", b"}", b"]", b"c")) or head[257:262] == b"ustar":
        return _pytorch(PytorchReader(opened, top_level_key=key, limits=limits))
    if head[:4] != b"NRUB":
        raise InvalidMagicNumber(
            f"{opened.name}: no weights in it; it is {looks_like(head, opened.size)}"
        )
    pack = Reader.from_source(opened, limits=limits, layout=layout)
    return Contents(
        "burnpack", pack.tensors("data"), dict(pack.scalars), dict(pack.metadata), _open=pack
    )


def _safetensors(file: SafetensorsFile) -> Contents:
    found = Contents("safetensors", [], metadata=dict(file.metadata), _open=file)
    for name in file:
        try:
            found.tensors.append(file[name])
        except StoreError as error:
            found.notes.append(str(error))
    packed = found.metadata.pop(SCALARS_KEY, None)
    if packed is not None:
        try:
            found.scalars = {
                name: Scalar(kind, value) for name, (kind, value) in json.loads(packed).items()
            }
        except (ValueError, TypeError, AttributeError) as error:
            raise MetadataDeserializationError(
                f"metadata entry {SCALARS_KEY!r} is no table of scalars: {error}"
            ) from error
    return found


def _pytorch(reader: PytorchReader) -> Contents:
    notes = [f"{name!r} is left out: {why}" for name, why in sorted(reader.unsupported.items())]
    found = Contents("pytorch", list(reader.values()), notes=notes, _open=reader)
    values = plain_values(reader.root)
    if values:
        text = json.dumps(values, ensure_ascii=False, sort_keys=True)
        if len(text) <= _LARGEST_VALUES:
            found.metadata[VALUES_KEY] = text
            found.notes.append(
                f"what is no tensor is kept in the metadata as {VALUES_KEY!r}: "
                f"{', '.join(sorted(map(str, values)))}"
            )
        else:
            found.notes.append(f"{len(text)} bytes of values that are no tensors are left out")
    return found


def _is_npz(opened: ByteSource) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(io.BufferedReader(SourceStream(opened))) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError):
        return False  # the reader of checkpoints says what is wrong
    return bool(names) and all(name.endswith(".npy") for name in names)


def _npz(opened: ByteSource) -> Contents:
    import zipfile

    archive = zipfile.ZipFile(io.BufferedReader(SourceStream(opened), 1 << 16))
    found = Contents("npz", [], _open=opened)
    for info in sorted(archive.infolist(), key=lambda info: info.filename):
        member = info.filename
        name = member.removesuffix(".npy")
        if info.file_size > max(_LARGE, _MAX_RATIO * info.compress_size):
            raise LimitError(
                f"{opened.name}: {member} would grow from {info.compress_size} to "
                f"{info.file_size} bytes; more than {_MAX_RATIO} times is refused above {_LARGE}"
            )
        shape, dtype = _npy_header(archive, member, opened.name)
        try:
            kind = DType.of(dtype)
        except TypeError as error:
            found.notes.append(f"{name!r} is left out: {error}")
            continue

        def provider(member: str = member) -> Any:
            with archive.open(member) as stream:
                return np.ascontiguousarray(np.lib.format.read_array(stream, allow_pickle=False))

        found.tensors.append(Tensor.deferred(name, kind, shape, provider))
    return found


def _npy_header(archive: Any, member: str, source: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        with archive.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, _, dtype = read(stream)
            return shape, dtype
    except (ValueError, KeyError, OSError, EOFError, NotImplementedError) as error:
        raise FormatError(f"{source}: {member!r} is no .npy array: {error}") from error


def _index(opened: ByteSource, given: Any) -> Contents:
    """Open the shards that an index names, all of them, and nothing beside them."""
    text = bytes(opened.read_at(0, opened.size))
    opened.close()
    try:
        fields = json.loads(text)
        places = fields["weight_map"]
        files = sorted(set(places.values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{opened.name}: JSON, but no index of a sharded model: it has no weight_map"
        ) from error
    if not (isinstance(given, str) or hasattr(given, "__fspath__")):
        raise StoreError("an index names files beside it; open it by its path")
    shards = _Shards()
    found = Contents("safetensors", [], _open=shards)
    try:
        for file in files:
            if not isinstance(file, str) or "/" in file or "\\" in file or file in {"", ".", ".."}:
                raise StoreError(f"{opened.name}: {file!r} is no file beside the index")
            path = desktop().beside(given, file)
            shard = _safetensors(
                SafetensorsFile(desktop().open_source(path, limits=Limits(), backend="read"))
            )
            shards.files.append(shard)
            found.tensors += [one for one in shard.tensors if places.get(one.name) == file]
            found.metadata.update(shard.metadata)
            found.notes += shard.notes
        absent = sorted(set(places) - {one.name for one in found.tensors})
        if absent and not found.notes:
            raise ReadError(f"{opened.name}: the shards lack {', '.join(absent[:10])}")
    except BaseException:
        shards.close()
        raise
    found.tensors.sort(key=lambda one: one.name)
    return found


class _Shards:
    def __init__(self) -> None:
        self.files: list[Contents] = []

    def close(self) -> None:
        for file in self.files:
            file.close()
