"""The first ten bytes, and where they say the data begins (container.md sections 2 and 3)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from bpk_lite.pack._errors import InvalidHeader, InvalidMagicNumber, InvalidVersion, LimitError
from bpk_lite.pack._limits import DEFAULT_LIMITS, Limits
from bpk_lite.pack._sniff import looks_like

__all__ = ["ALIGNMENT", "Header", "PackLayout", "aligned"]

ALIGNMENT = 256
MAGIC = 0x4255524E  # little-endian on disk, hence NRUB (C5)
VERSION = 1
_STRUCT = struct.Struct("<IHI")
HEADER_SIZE = _STRUCT.size
SNIFF_SIZE = 512
PackLayout: TypeAlias = Literal["aligned", "unaligned"]


def aligned(offset: int) -> int:
    """Round up to the next multiple of 256 (C11)."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class Header:
    """The fixed header of a pack.

    Attributes:
        metadata_size: bytes of the CBOR item behind the header.
        version: the format version; 0 and 1 are read, 1 is written (C6, C7).
        layout: where the data begin: at a multiple of 256, or right behind the metadata, as Burn
            0.19 had it (section 16). Only the first is written.
    """

    metadata_size: int
    version: int = VERSION
    layout: PackLayout = "aligned"

    @property
    def data_start(self) -> int:
        """Absolute offset of the first tensor (C12)."""
        if self.layout == "unaligned":
            return HEADER_SIZE + self.metadata_size
        return aligned(HEADER_SIZE + self.metadata_size)

    def encode(self) -> bytes:
        """Return the ten bytes (C4)."""
        return _STRUCT.pack(MAGIC, self.version, self.metadata_size)

    @classmethod
    def decode(
        cls,
        head: bytes,
        *,
        size: int,
        name: str = "<bytes>",
        limits: Limits = DEFAULT_LIMITS,
        layout: PackLayout = "aligned",
    ) -> Header:
        """Read the header from the first bytes of a pack of `size` bytes.

        The checks run in the order of C75, whatever the bytes come from. A few more bytes than ten
        let the message say what a foreign file is.

        Raises:
            ValueError: there is no such layout.
            InvalidHeader, InvalidMagicNumber, InvalidVersion, LimitError: as C75 says.
        """
        if layout not in get_args(PackLayout):
            raise ValueError(f"layout is {' or '.join(get_args(PackLayout))}, not {layout!r}")
        if len(head) < HEADER_SIZE:
            raise InvalidHeader(
                f"{name}: {size} bytes are too few for a burnpack header of {HEADER_SIZE}; "
                f"this is {looks_like(head, size)}"
            )
        magic, version, metadata_size = _STRUCT.unpack_from(head)
        if magic != MAGIC:
            raise InvalidMagicNumber(
                f"{name}: not a burnpack: begins with {head[:4].hex(' ')}, expected 4e 52 55 42 "
                f"(NRUB); this is {looks_like(head, size)}"
            )
        if version > VERSION:
            raise InvalidVersion(
                f"{name}: burnpack version {version}; this release reads up to {VERSION}"
            )
        if metadata_size > limits.metadata:
            raise LimitError(
                f"{name}: the header announces {metadata_size} bytes of metadata; "
                f"the limit is {limits.metadata}"
            )
        if HEADER_SIZE + metadata_size > size:
            raise InvalidHeader(
                f"{name}: the header announces {metadata_size} bytes of metadata behind its own "
                f"{HEADER_SIZE}, but there are {size} bytes in all; was the save interrupted?"
            )
        return cls(metadata_size, version, layout)
