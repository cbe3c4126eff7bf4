"""Metadata that are parsed all at once read as one by one, or are left to that (C75, C126)."""

from __future__ import annotations

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpk_lite as bpk
from bpk_lite import testing
from bpk_lite.pack import BpkError, DType, Header, Limits, Tensor, Writer
from bpk_lite.pack._canonical import parse_canonical
from bpk_lite.pack._metadata import Metadata, _parse_at_once, _parse_one_by_one

LIMITS = Limits()
HEADER = Header(1, 1000, 1024)
PLAIN = [kind for kind in vars(DType).values() if isinstance(kind, DType) and kind.name != "Bool"]


def at_once(blob, limits=LIMITS):
    return _parse_at_once(blob, HEADER.data_start, limits)


def one_by_one(blob, limits=LIMITS):
    return _parse_one_by_one(blob, HEADER, limits)


def metadata_of(tensors, text=None, scalars=None):
    plan = Writer(tensors, metadata=text, scalars=scalars).plan()
    return Metadata.encode(plan.entries, text or {}, scalars or {})


def tensor(name, dtype, shape, param_id=None):
    provider = bytes  # never called: only the metadata are written
    return Tensor.deferred(name, dtype, shape, provider, param_id=param_id)


@st.composite
def canonical(draw):
    """Metadata of up to 40 tensors, as Burn writes them."""
    sides = st.integers(1, 5) | st.sampled_from([23, 24, 255, 256, 65_535, 65_536])
    names = st.lists(testing.names() | st.text("ab", min_size=20, max_size=300), unique=True,
                     min_size=1, max_size=40)  # fmt: skip
    tensors = [
        tensor(
            name,
            draw(st.sampled_from(PLAIN)),
            (*draw(st.lists(sides, max_size=1)), *draw(st.lists(st.integers(1, 3), max_size=4))),
            draw(testing.param_ids()),
        )
        for name in draw(names)
    ]
    scalars = draw(st.dictionaries(testing.names(), testing.scalars(), max_size=2))
    return metadata_of(tensors, draw(testing.metadata()), scalars)


@given(canonical())
def test_what_burn_writes_is_parsed_at_once_with_the_same_result(blob):
    """Names of any length and script, all plain dtypes, ranks 0 to 5, ids of any width."""
    found = at_once(blob)
    assert found is not None
    assert repr(one_by_one(blob)) == repr(found)  # by repr, for NaN


@given(canonical(), st.data())
def test_spoilt_metadata_are_never_read_otherwise(blob, data):
    """Bytes changed, cut out or doubled: the same result as one by one, or none."""
    spoilt = bytearray(blob)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(spoilt) - 1))
        length = data.draw(st.integers(0, 3))
        spoilt[at : at + length] = data.draw(
            st.binary(max_size=3) | st.just(bytes(spoilt[at : at + 20]))
        )
        if not spoilt:
            return
    found = at_once(bytes(spoilt))
    if found is not None:
        assert repr(one_by_one(bytes(spoilt))) == repr(found)


ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def of(**tensors):
    return {"tensors": {name: {**ONE, **fields} for name, fields in tensors.items()}}


@pytest.mark.parametrize(
    "top",
    [
        of(a={"shape": [0], "data_offsets": [0, 0]}),
        of(a={"dtype": {"Bool": "Native"}, "data_offsets": [0, 2]}),
        of(a={"data_offsets": [8, 0]}),
        of(a={"data_offsets": [0, 9]}),
        of(a={"data_offsets": [0, 2**64 - 1]}),
        of(a={"shape": [2**32, 2**32, 2**32], "data_offsets": [0, 0]}),
        of(a={"shape": [2**62, 4], "data_offsets": [0, 0]}),
        of(a={"shape": [2**64 - 1, 2, 0], "data_offsets": [0, 0]}),
        of(a={"shape": [2**63 + 2], "data_offsets": [0, 8]}),
        of(a={"data_offsets": [2**64 - 9, 2**64 - 1]}),
        of(a={"param_id": None}),
        of(a={"param_id": -1}),
        of(a={"more": 1}),
        of(a={"param_ie": 3}),
        of(a={"dtype": "F31"}),
        of(a={"dtype": "F32x"}),
        of(b={}, a={}),
        {"tensors": {}},
        {"metadata": {}, **of(a={})},
        {**of(a={}), "metadata": {"k": 1}},
        {**of(a={}), "more": 1, "metadata": {}},
        {**of(a={}), "scalars": {"x": {"Int": 2**70}}},
        {"tensors": {"a": dict(reversed(ONE.items()))}},
        {"tensors": {"\u00e4edtypecF32": ONE, "param_id": ONE}},
        {"tensors": {"a": ONE, "param_id": {**ONE, "param_id": 3}}},
    ],
    ids=lambda top: str(top)[:60],
)  # fmt: skip
def test_other_forms_give_what_one_by_one_gives(top):
    """Empty and wrong tensors, products beyond 64 bits, other orders and fields, odd names."""
    blob = cbor2.dumps(top)
    try:
        expected = one_by_one(blob)
    except BpkError:
        assert at_once(blob) is None
        return
    found = at_once(blob)
    assert found is None or repr(expected) == repr(found)


def test_repeated_names_and_bytes_that_follow_are_left_to_the_slow_way():
    """Which refuses them (B9, A6)."""
    blob = metadata_of([tensor("a", "F32", (2,)), tensor("b", "F32", (2,))])
    assert at_once(blob) is not None
    assert at_once(blob.replace(b"ab", b"aa")) is None
    assert at_once(blob.replace(b"\x61b\xa3", b"\x61a\xa3")) is None
    assert at_once(blob + b"\0") is None
    assert at_once(blob[:-1]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"gtensors", b"gtensorz"),
        (b"\x61b\xa3", b"\x61b\xa4"),
        (b"\x61b\xa3", b"\x61b\xa2"),
        (b"\x61b\xa3", b"\x79\xff\xff\xa3"),
        (b"\x61b\xa3", b"\x78\xff\xa3"),
        (b"\x61b\xa3", b"\x7a\xff\xff\xa3"),
        (b"edtype", b"edtypo"),
        (b"eshape\x81\x02", b"eshape\x82\x02"),
        (b"eshape\x81\x02", b"eshape\x98\x02"),
        (b"cF32", b"cF33"),
        (b"ldata_offsets", b"ldata_offsetz"),
        (b"\x82\x00\x08", b"\x82\x20\x08"),
        (b"\x82\x00\x08", b"\x82\x00\x1b"),
    ],
)
def test_a_byte_that_is_wrong_anywhere_leaves_it_to_the_slow_way(old, new):
    """Which refuses all of these; the fast way must not run out of the bytes either."""
    blob = metadata_of([tensor("a", "F32", (2,), 1 << 40), tensor("b", "F32", (2,))])
    for spoilt in (blob.replace(old, new), new.join(blob.rsplit(old, 1))):
        assert spoilt != blob
        assert at_once(spoilt) is None
        with pytest.raises(BpkError):
            one_by_one(spoilt)


@pytest.mark.parametrize("wide", ["tensors", "tensor_bytes"])
def test_limits_hold(wide):
    """More tensors or bytes than allowed is left to the slow way, which says so."""
    blob = metadata_of([tensor("a", "F32", (2,)), tensor("b", "F32", (2,))])
    assert at_once(blob, Limits(**{wide: {"tensors": 2, "tensor_bytes": 8}[wide]})) is not None
    assert at_once(blob, Limits(**{wide: {"tensors": 1, "tensor_bytes": 7}[wide]})) is None


@pytest.mark.parametrize("count", [1, 280, 300, 320, 2000])
def test_a_reader_gives_the_same_either_way(count):
    """Through `open`, below and above the size from which all are parsed at once."""
    tensors = [
        tensor(f"layer.{i:04}.weight", "F16", (1, i + 1), i * 0x9E3779B97F4A7C15 % 2**64)
        for i in range(count)
    ]
    plan = Writer(tensors).plan()
    pack = bpk.open(plan.header + bytes(plan.size - len(plan.header)))
    assert list(plan.entries) == pack.entries()
    assert [t.name for t in plan.tensors] == list(pack)


def test_large_packs_are_parsed_at_once():
    """The fast way is taken: a thousand tensors make no dict each."""
    blob = metadata_of([tensor(f"{i:04}", "F32", (2,)) for i in range(1000)])
    table, fields, end = parse_canonical(blob, data_start=HEADER.data_start, limits=LIMITS)
    assert (1000, 0, len(blob)) == (len(table.names), fields, end)
