"""The one place where CBOR is read and written.

A burnpack holds a small part of CBOR, and less is accepted here than Burn's reader lets through
(container.md section 7): no tags and so no bignums, no indefinite lengths, no repeated keys, no
keys but text, nothing behind the item. What stays is decoded by cbor2; its switches refuse most of
the rest while it reads, so strictness costs 3 %.

Writing is byte-identical to Burn's (C26 to C30). cbor2 already writes shortest heads and keeps the
order of a dict; only floats need care, since Burn shortens by bits and NaNs have bits too.
"""

from __future__ import annotations

import io
import struct
from typing import Any

import cbor2

from bpk_lite.pack._errors import MetadataDeserializationError, MetadataSerializationError

__all__ = ["Float", "decode", "encode"]

# every tag that cbor2 gives a meaning; all others reach the tag hook
_TAGS = (
    0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000,
    55799,
)  # fmt: skip


# Fields that are ignored may hold maps with any keys (C44). Keys with colliding hashes would make a
# large one take hours, so beyond this size keys are text or bytes everywhere.
_SMALL = 64 << 10


class _TagError(ValueError):
    pass


def _refuse(*_: Any) -> Any:
    raise _TagError("tags are not used in burnpack metadata")


_REFUSE_TAGS: dict[int, Any] = dict.fromkeys(_TAGS, _refuse)


def decode(blob: bytes, *, depth: int) -> Any:
    """Return the value of the one CBOR item that `blob` is.

    Maps become dicts, in the order of the file, and arrays lists. Which keys are text is for the
    caller to check.

    Raises:
        MetadataDeserializationError: no CBOR, cut short, nested deeper than `depth`, followed by
            other bytes (C49), or one of the forms refused above.
    """
    stream = io.BytesIO(blob)
    decoder = cbor2.CBORDecoder(
        stream,
        read_size=1 << 20,
        tag_hook=_refuse,
        semantic_decoders=_REFUSE_TAGS,
        max_depth=depth,
        allow_indefinite=False,
        allow_duplicate_keys=False,
        strict_hashable_types=len(blob) > _SMALL,
    )
    try:
        item = decoder.decode()
    except (cbor2.CBORError, ValueError, OverflowError, MemoryError) as error:
        cause = error.__cause__ if isinstance(error.__cause__, _TagError | UnicodeError) else error
        raise MetadataDeserializationError(
            f"metadata is not CBOR that a burnpack may hold: {cause}"
        ) from error
    end = stream.tell()
    if end != len(blob):
        raise MetadataDeserializationError(
            f"metadata: {len(blob) - end} bytes follow the CBOR item, which ends at byte {end} "
            f"of {len(blob)}"
        )
    return item


class Float:
    """A number to be written as a CBOR float by Burn's rule."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


def encode(item: Any) -> bytes:
    """Return the CBOR of `item`: dicts, lists, text, ints, bools, None and `Float`.

    Raises:
        MetadataSerializationError: text with lone surrogates, or a type no pack can hold.
    """
    try:
        return cbor2.dumps(item, encoders={Float: _encode_float})
    except (cbor2.CBORError, ValueError, TypeError, OverflowError) as error:
        raise MetadataSerializationError(f"metadata cannot be written as CBOR: {error}") from error


def _encode_float(encoder: Any, item: Float) -> None:
    encoder.write(_shortest(item.value))


def _shortest(value: float) -> bytes:
    """Return the narrowest CBOR float that converts back to the same 64 bits (C29, C30)."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    fraction = bits & ((1 << 52) - 1)
    if bits >> 52 & 0x7FF == 0x7FF:
        # infinity or NaN: narrowing drops low payload bits and sets the quiet bit
        sign = bits >> 63
        if fraction == 0 or fraction >> 51:
            if fraction & ((1 << 42) - 1) == 0:
                return struct.pack(">BH", 0xF9, sign << 15 | 0x7C00 | fraction >> 42)
            if fraction & ((1 << 29) - 1) == 0:
                return struct.pack(">BI", 0xFA, sign << 31 | 0x7F800000 | fraction >> 29)
    else:
        for head, code in ((0xF9, ">e"), (0xFA, ">f")):
            try:
                narrow = struct.pack(code, value)
            except OverflowError:
                continue
            if struct.unpack(code, narrow)[0] == value:  # signs of zero survive narrowing
                return bytes([head]) + narrow
    return struct.pack(">BQ", 0xFB, bits)
