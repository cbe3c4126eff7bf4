"""Checkpoints of PyTorch 1.6 and later, and TorchScript archives: a zip of a pickle and storages.

`zipfile` reads the directory; storages that are stored, as PyTorch writes them, are windows of the
source. Tricks are refused: two entries of one name, local headers that name something else, and
deflated entries that grow beyond reason (bugs C16, C21).
"""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING

from bpk_lite.pack import FormatError, LimitError, MetadataDeserializationError, TruncatedError
from bpk_lite.store.pytorch._stream import SourceStream

if TYPE_CHECKING:
    import zipfile

    from bpk_lite.pack import ByteSource
    from bpk_lite.store.pytorch._values import StorageValue

__all__ = ["ZipArchive"]

_MAX_PICKLE = 100 << 20
_MAX_TEXT = 4096
_MAX_RATIO = 200  # deflate reaches 1000; real tensors do not come near
_LOCAL_HEADER = 30


class ZipArchive:
    """An open archive.

    Attributes:
        root: the folder of ``data.pkl``, with its slash.
        pickle: the bytes of ``data.pkl``.
        big_endian: what ``byteorder`` says.
        texts: ``version``, ``.format_version`` and the like, by name.
        data_size: bytes of all storages.
    """

    def __init__(self, source: ByteSource) -> None:
        import zipfile

        self._source = source
        try:
            self._zip = zipfile.ZipFile(io.BufferedReader(SourceStream(source), 1 << 16))
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
            raise MetadataDeserializationError(
                f"{source.name}: the zip archive is broken: {error}; was the save interrupted?"
            ) from error
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            if info.filename in self._entries:
                raise FormatError(f"{source.name}: the archive has two entries {info.filename!r}")
            self._entries[info.filename] = info
        pickles = [name for name in self._entries if name.endswith("data.pkl")]
        if not pickles:
            raise FormatError(f"{source.name}: not a PyTorch checkpoint: the zip has no data.pkl")
        self.root = min(pickles, key=len).removesuffix("data.pkl")
        self.big_endian = self._byte_order()
        self.texts = {
            name: text.strip()
            for name in ("version", ".format_version", ".storage_alignment")
            if (text := self._text(name)) is not None
        }
        self.pickle = bytes(self._whole(self.root + "data.pkl", _MAX_PICKLE))
        prefix = f"{self.root}data/"
        self.data_size = sum(
            info.file_size for name, info in self._entries.items() if name.startswith(prefix)
        )

    def storage(self, value: StorageValue) -> ZipStorage:
        """Return the bytes of a storage; whether it is there shows when it is read."""
        return ZipStorage(self, value.key)

    def _text(self, name: str) -> str | None:
        path = self.root + name
        if path not in self._entries:
            return None
        return bytes(self._whole(path, _MAX_TEXT)).decode("utf-8", errors="replace")

    def _byte_order(self) -> bool:
        order = (self._text("byteorder") or "little").strip()
        if order not in ("little", "big"):
            raise FormatError(f"{self._source.name}: Unrecognized byteorder {order!r}")
        return order == "big"

    def read(self, key: str, offset: int, length: int, *, whole: bool) -> memoryview:
        """Return a range of a storage. Raises FormatError."""
        path = f"{self.root}data/{key}"
        info = self._entries.get(path)
        if info is None:
            raise FormatError(f"{self._source.name}: storage {key!r} is missing from the archive")
        if offset + length > info.file_size:
            raise TruncatedError(
                f"{self._source.name}: storage {key!r} has {info.file_size} bytes, only "
                f"{max(0, info.file_size - offset)} are available of {length} from {offset}"
            )
        if info.compress_type != 0:
            return self._inflated(info)[offset : offset + length]
        start = self._data_offset(info)
        data = self._source.read_at(start + offset, length)
        if whole and length == info.file_size:
            self._check(info, data)
        return data

    def _whole(self, path: str, limit: int) -> memoryview:
        info = self._entries[path]
        if info.file_size > limit:
            raise LimitError(
                f"{self._source.name}: {path} has {info.file_size} bytes; the limit is {limit}"
            )
        if info.compress_type != 0:
            return self._inflated(info)
        data = self._source.read_at(self._data_offset(info), info.file_size)
        self._check(info, data)
        return data

    def _check(self, info: zipfile.ZipInfo, data: memoryview) -> None:
        """Check a checksum; 0 means that none was computed (S122)."""
        if info.CRC and zlib.crc32(data) != info.CRC:
            raise MetadataDeserializationError(
                f"{self._source.name}: Invalid checksum of {info.filename}"
            )

    def _data_offset(self, info: zipfile.ZipInfo) -> int:
        """Return where the data of an entry begin, behind its own header, which must name it."""
        if info.flag_bits & 0x1:
            raise FormatError(f"{self._source.name}: {info.filename} is encrypted")
        header = self._read(info.header_offset, _LOCAL_HEADER)
        name_length = int.from_bytes(header[26:28], "little")
        extra_length = int.from_bytes(header[28:30], "little")
        name = bytes(self._read(info.header_offset + _LOCAL_HEADER, name_length))
        if info.compress_type == 0 and info.compress_size != info.file_size:
            raise MetadataDeserializationError(
                f"{self._source.name}: {info.filename} is stored, but has two sizes: "
                f"{info.compress_size} and {info.file_size}"
            )
        encoding = "utf-8" if info.flag_bits & 0x800 else "cp437"
        if bytes(header[:4]) != b"PK\x03\x04" or name != info.orig_filename.encode(
            encoding, errors="replace"
        ):
            raise MetadataDeserializationError(
                f"{self._source.name}: the archive's directory and the header of {info.filename} "
                "contradict each other"
            )
        return info.header_offset + _LOCAL_HEADER + name_length + extra_length

    def _read(self, offset: int, length: int) -> memoryview:
        if offset < 0 or offset + length > self._source.size:
            raise TruncatedError(
                f"{self._source.name}: the archive's directory points beyond its end"
            )
        return self._source.read_at(offset, length)

    def _inflated(self, info: zipfile.ZipInfo) -> memoryview:
        if info.compress_type != 8:
            raise FormatError(
                f"{self._source.name}: {info.filename} is compressed by method "
                f"{info.compress_type}; PyTorch stores entries, or deflates them"
            )
        if info.file_size > _MAX_RATIO * max(info.compress_size, 1024):
            raise LimitError(
                f"{self._source.name}: {info.filename} would grow from {info.compress_size} to "
                f"{info.file_size} bytes; more than {_MAX_RATIO} times is refused"
            )
        packed = self._read(self._data_offset(info), info.compress_size)
        try:
            data = zlib.decompressobj(-15).decompress(packed, info.file_size + 1)
        except zlib.error as error:
            raise MetadataDeserializationError(
                f"{self._source.name}: {info.filename} is damaged: {error}"
            ) from error
        if len(data) != info.file_size:
            raise TruncatedError(
                f"{self._source.name}: {info.filename} holds {len(data)} bytes, its directory says "
                f"{info.file_size}"
            )
        view = memoryview(data)
        self._check(info, view)
        return view


class ZipStorage:
    """One storage of an archive."""

    __slots__ = ("_archive", "_key")

    def __init__(self, archive: ZipArchive, key: str) -> None:
        self._archive = archive
        self._key = key

    @property
    def big_endian(self) -> bool:
        """What the archive says."""
        return self._archive.big_endian

    def read(self, offset: int, length: int, *, whole: bool) -> memoryview:
        """Return a range of the bytes."""
        return self._archive.read(self._key, offset, length, whole=whole)
