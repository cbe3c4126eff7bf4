"""Hostile CBOR (bugs.md section B): typed errors at once, no crash, no large allocation."""

from __future__ import annotations

import tracemalloc

import pytest

from bpk_lite.pack import Header, MetadataDeserializationError, Reader
from tests.support import descriptor, pack_of, raw_pack

TENSORS = b"\xa1\x67tensors"

BLOBS = {
    "nested arrays": b"\x81" * 200_000 + b"\x00",
    "nested maps": b"\xa1\x61a" * 100_000 + b"\x00",
    "nested tags": b"\xcb" * 200_000 + b"\x00",
    "nested indefinite arrays": b"\x9f" * 200_000,
    "text of 2^40": TENSORS + b"\x7b" + (1 << 40).to_bytes(8, "big"),
    "text of 2^62": TENSORS + b"\x7b" + (1 << 62).to_bytes(8, "big"),
    "text of 2^64-1": TENSORS + b"\x7b" + b"\xff" * 8,
    "bytes of 2^63": TENSORS + b"\x5b" + (1 << 63).to_bytes(8, "big"),
    "array of 2^40": TENSORS + b"\x9b" + (1 << 40).to_bytes(8, "big"),
    "array of 2^64-1": TENSORS + b"\x9b" + b"\xff" * 8,
    "map of 2^62": TENSORS + b"\xbb" + (1 << 62).to_bytes(8, "big"),
    "bignum around an array": TENSORS + b"\xc2\x82\x01\x02",
    "reserved heads": TENSORS + b"\x1c",
    "two-byte simple value below 32": TENSORS + b"\xf8\x14",
    "break": TENSORS + b"\xff",
    "name that is not UTF-8": TENSORS + b"\xa1\x61\xff\xa0",
    "surrogate in UTF-8": TENSORS + b"\xa1\x63\xed\xa0\x80\xa0",
    "integer as key": TENSORS + b"\xa1\x01\xa0",
    "list as key": TENSORS + b"\xa1\x80\xa0",
    "nothing": b"",
    "only a number": b"\x00",
    "trailing bytes": TENSORS + b"\xa0" + bytes(64),
    "two items": TENSORS + b"\xa0" + TENSORS + b"\xa0",
}


@pytest.mark.parametrize("blob", BLOBS.values(), ids=BLOBS)
def test_hostile_metadata_is_a_typed_error_without_allocation(blob):
    """Depth, huge claims, tags, keys and trailing bytes end as one error (bugs B1 to B9, A6)."""
    pack = raw_pack(blob)
    Reader.from_bytes(raw_pack(TENSORS + b"\xa0"))
    tracemalloc.start()
    try:
        with pytest.raises(MetadataDeserializationError):
            Reader.from_bytes(pack)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(pack) + 2_500_000
    finally:
        tracemalloc.stop()


def test_non_minimal_integers_are_read_and_never_written():
    """Ciborium reads `18 00` for 0 and so do we (bug B9)."""
    blob = pack_of({"a": descriptor(shape=(0,), offsets=(0, 0))})
    size = Header.decode(blob, size=len(blob)).metadata_size
    metadata = blob[10 : 10 + size]
    wide = metadata.replace(b"\x65shape\x81\x00", b"\x65shape\x81\x18\x00")
    assert wide != metadata
    assert (0,) == Reader.from_bytes(raw_pack(wide))["a"].shape


@pytest.mark.parametrize(
    "where",
    [
        'tensors["n"]',
        "dtype",
        "shape[1]",
        "data_offsets",
        "param_id",
        'metadata["k"]',
        'scalars["s"]',
    ],
)
def test_errors_carry_the_path_inside_the_metadata(where):
    """What is wrong is located: tensors['n'].shape[1] and the like."""
    fields = descriptor()
    top = {}
    if where == "dtype":
        fields["dtype"] = "f32"
    elif where == "shape[1]":
        fields["shape"] = [1, -2]
    elif where == "data_offsets":
        fields["data_offsets"] = [0]
    elif where == "param_id":
        fields["param_id"] = 0.5
    elif where == 'metadata["k"]':
        top["metadata"] = {"k": 3}
    elif where == 'scalars["s"]':
        top["scalars"] = {"s": {"Int": 1.5}}
    else:
        fields = [1, 2]
    with pytest.raises(MetadataDeserializationError) as caught:
        Reader.from_bytes(pack_of({"n": fields}, **top), name="model.bpk")
    assert str(caught.value).startswith("model.bpk: ")
    assert where.replace('"', "'") in str(caught.value)


def test_colliding_keys_cannot_hang_the_decoder():
    """In large metadata keys of ignored fields must be text, so hashes cannot be made to collide."""
    keys = b"".join(
        b"\x82\x19" + (i % 65536).to_bytes(2, "big") + b"\x00\x00" for i in range(20_000)
    )
    blob = b"\xa2\x67tensors\xa0\x61x\xb9" + (20_000).to_bytes(2, "big") + keys
    with pytest.raises(MetadataDeserializationError, match="text"):
        Reader.from_bytes(raw_pack(blob))
