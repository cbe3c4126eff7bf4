"""Each odd thing a pack can have is found, and nothing in a right one (bugs A4, A6, A14, A17)."""

from __future__ import annotations

import cbor2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite import testing
from bpk_lite.inspect import summarize, verify
from bpk_lite.inspect._verify import from_entries, is_regular
from bpk_lite.pack import MetadataDeserializationError, Reader, TruncatedError, Writer
from tests.support import descriptor, pack_of, raw_pack

SCHEME = {
    "value": "Q8S", "store": "Native", "mode": "Symmetric", "tensor": "F32", "block": None,
}  # fmt: skip


def codes(blob, **options):
    return [finding.code for finding in verify(Reader.from_bytes(blob), **options)]


def u8(start, end, **more):
    return descriptor("U8", (end - start,), (start, end), **more)


def nonzero(size, *positions):
    data = bytearray(size)
    for position in positions:
        data[position] = 1
    return bytes(data)


CASES = {
    "right": ({"a": u8(0, 300), "b": u8(512, 513)}, bytes(513), []),
    "misaligned": ({"a": u8(0, 1), "b": u8(4, 6)}, bytes(6), ["misaligned"]),
    "misaligned and overlapping": ({"a": u8(0, 5), "b": u8(4, 6)}, bytes(6), ["misaligned", "overlap"]),
    "the same range twice": ({"a": u8(0, 5), "b": u8(0, 5)}, bytes(5), ["overlap"]),
    "one inside another": ({"a": u8(0, 600), "b": u8(256, 257)}, bytes(600), ["overlap"]),
    "a gap in front": ({"a": u8(256, 257)}, bytes(257), ["gap"]),
    "a gap between": ({"a": u8(0, 1), "b": u8(512, 513)}, bytes(513), ["gap"]),
    "bytes in the padding": ({"a": u8(0, 1), "b": u8(256, 257)}, nonzero(257, 255), ["padding"]),
    "bytes in a gap": ({"a": u8(0, 1), "b": u8(512, 513)}, nonzero(513, 300), ["gap", "padding"]),
    "bytes behind the end": ({"a": u8(0, 1)}, bytes(2), ["trailing"]),
    "one id twice": ({"a": u8(0, 1, param_id=3), "b": u8(256, 257, param_id=3)}, bytes(257), ["duplicate-id"]),
    "an optimizer's ids": ({"3.x": u8(0, 1, param_id=3), "3.y": u8(256, 257, param_id=3)}, bytes(257), []),
    "id 0": ({"a": u8(0, 1, param_id=0), "b": u8(256, 257, param_id=0)}, bytes(257), ["duplicate-id"]),
    "booleans of 2": ({"a": descriptor({"Bool": "Native"}, (2,), (0, 2))}, b"\1\2", ["bool-value"]),
    "booleans of 255": ({"a": descriptor({"Bool": "U8"}, (2,), (0, 2))}, b"\xff\0", ["bool-value"]),
    "wide booleans": ({"a": descriptor({"Bool": "U32"}, (1,), (0, 4))}, b"\0\1\0\0", ["bool-value"]),
    "right booleans": ({"a": descriptor({"Bool": "U32"}, (1,), (0, 4))}, b"\1\0\0\0", []),
    "quantized": ({"a": descriptor({"QFloat": SCHEME}, (4,), (0, 8))}, bytes(8), []),
    "quantized, short": ({"a": descriptor({"QFloat": SCHEME}, (4,), (0, 7))}, bytes(7), ["quantized-length"]),
    "quantized, of another rank": (
        {"a": descriptor({"QFloat": SCHEME | {"store": {"PackedU32": 3}, "value": "Q4S"}}, (4,), (0, 8))},
        bytes(8), ["quantized-length"],
    ),
    "quantized, of an older Burn": (
        {"a": descriptor({"QFloat": SCHEME | {"level": "Tensor"}}, (4,), (0, 8))}, bytes(8), ["quantized-unknown"],
    ),
    "empty tensors": ({"a": u8(0, 0), "b": u8(0, 3), "c": u8(256, 256)}, bytes(256), []),
    "an empty tensor inside another": ({"a": u8(0, 600), "b": u8(256, 256)}, bytes(600), []),
    "an empty tensor off the grid": ({"a": u8(0, 600), "b": u8(5, 5)}, bytes(600), ["misaligned"]),
    "only metadata": ({}, b"", []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_odd_thing_has_its_code(case):
    """Alone where it can be alone; a message names what and where."""
    tensors, data, expected = CASES[case]
    blob = pack_of(tensors, data, metadata={"k": "v"})
    assert expected == codes(blob)
    for finding in verify(Reader.from_bytes(blob)):
        assert finding.tensor is None or repr(finding.tensor) in finding.message
        assert "a" == finding.tensor or finding.code != "duplicate-id"
    without_data = [code for code in expected if code not in {"padding", "bool-value"}]
    assert without_data == codes(blob, data=False)
    assert without_data == [one.code for one in summarize(Reader.from_bytes(blob)).warnings]


def test_bytes_between_the_metadata_and_the_data_are_padding_too():
    """Also where no tensor follows; a polyglot could hide there (bug A6)."""
    right = pack_of({"a": u8(0, 1)}, bytes(1))
    first = 10 + Reader.from_bytes(right).header.metadata_size
    for position in (first, len(right) - 2):
        blob = bytearray(right)
        blob[position] = 1
        assert ["padding"] == codes(bytes(blob))
    blob = bytearray(pack_of({}, metadata={"k": "v"}))
    blob[-1] = 1
    assert "padding" in codes(bytes(blob))


def test_bytes_behind_the_metadata_item_do_not_open():
    """Stricter than a warning (bug A6)."""
    with pytest.raises(MetadataDeserializationError, match="follow the CBOR item"):
        Reader.from_bytes(raw_pack(cbor2.dumps({"tensors": {}}) + bytes(64)))


def test_a_truncated_pack_does_not_open():
    """It is an error, and never a pack of fewer tensors (bug A17)."""
    blob = Writer({"a": np.ones(100), "b": np.ones(100)}).plan().into_bytes()
    with pytest.raises(TruncatedError):
        Reader.from_bytes(blob[:-1])


def test_an_old_version_and_an_empty_pack_are_named():
    """Version 0 opens; a pack without anything is a pack without anything (bug A17)."""
    assert ["old-version", "empty"] == codes(raw_pack(cbor2.dumps({"tensors": {}}), version=0))


def test_many_overlaps_are_found_quickly_and_each_named_with_its_holder():
    """The tensor that reaches furthest is the one that the others overlap (bug A4)."""
    tensors = {"big": u8(0, 5000)} | {f"t{i}": u8(256 * i, 256 * i + 8) for i in range(1, 19)}
    found = verify(Reader.from_bytes(pack_of(tensors, bytes(5000))))
    assert [("overlap", True)] * 18 == [(one.code, "'big'" in one.message) for one in found]


RANGES = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 100, 256, 300, 512, 768]), st.sampled_from([0, 1, 200, 256, 300]), st.none() | st.integers(0, 2)),
    max_size=4,
)  # fmt: skip


@given(RANGES, st.integers(0, 1), st.integers(0, 1))
def test_the_quick_look_never_passes_what_the_close_one_finds(ranges, trailing, version):
    """`is_regular` is sure when it says so (parity of fast and slow)."""
    tensors = {}
    for i, (start, length, param_id) in enumerate(ranges):
        more = {} if param_id is None else {"param_id": param_id}
        tensors[f"t{i}"] = u8(start, start + length, **more)
    end = max((start + length for start, length, _ in ranges), default=0)
    pack = Reader.from_bytes(
        raw_pack(cbor2.dumps({"tensors": tensors}), bytes(end + trailing), version=version)
    )
    if is_regular(pack, pack.table()):
        assert [] == from_entries(pack, pack.entries())


@given(st.lists(testing.tensors(), min_size=1, max_size=4, unique_by=lambda tensor: tensor.name))
def test_what_we_write_is_regular(tensors):
    """So that a large pack is summarized quickly; quantized tensors and shared ids get a close look."""
    pack = Reader.from_bytes(Writer(tensors).plan().into_bytes())
    ids = [tensor.param_id for tensor in tensors if tensor.param_id is not None]
    plain = all(tensor.dtype.kind != "quantized" for tensor in tensors)
    assert (plain and len(set(ids)) == len(ids)) == is_regular(pack, pack.table())
