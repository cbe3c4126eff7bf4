"""The ten bytes in front (container.md sections 2 and 3; burn-pack's tests/header.rs, alignment.rs)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite.pack import (
    ALIGNMENT,
    Header,
    InvalidHeader,
    InvalidMagicNumber,
    InvalidVersion,
    LimitError,
    Reader,
    Writer,
)


def test_the_header_is_ten_little_endian_bytes():
    """Magic NRUB, version 1, size of the metadata (C4 to C6)."""
    assert b"NRUB\x01\x00\x9a\x00\x00\x00" == Header(154).encode()


def test_a_header_survives_a_round_trip():
    """Decoding what was encoded gives the same header."""
    assert Header(154) == Header.decode(Header(154).encode(), size=1000)


@pytest.mark.parametrize(
    ("metadata_size", "start"), [(0, 256), (245, 256), (246, 256), (247, 512), (1398, 1536)]
)
def test_data_start_on_the_next_multiple_of_256(metadata_size, start):
    """C12's examples, the one without padding among them."""
    assert start == Header(metadata_size).data_start


def three():
    """Return a pack of three tensors with a gap behind each of the first two, and its plan."""
    arrays = {"c": np.arange(1, 6, dtype="u1"), "a": np.ones(1, "<f4"), "b": np.ones(3, "<i2")}
    plan = Writer(arrays).plan()
    return arrays, plan, plan.into_bytes()


def test_a_pack_ends_with_its_last_tensor():
    """No trailer, no checksum and no rounding up; what follows is no concern of a reader (C2, C15)."""
    arrays, plan, blob = three()
    assert len(blob) == plan.entries[-1].end + Reader.from_bytes(blob).header.data_start
    assert arrays["b"].tobytes() == blob[-6:]
    longer = Reader.from_bytes(blob + b"anything")
    assert {name: array.tolist() for name, array in arrays.items()} == {
        name: tensor.numpy().tolist() for name, tensor in longer.items()
    }


def gaps(plan, blob):
    """Return the places that belong to no region: the padding and the gaps between tensors."""
    header = Header.decode(blob, size=len(blob))
    taken = set(range(10 + header.metadata_size))
    for entry in plan.entries:
        taken.update(range(header.data_start + entry.start, header.data_start + entry.end))
    return [place for place in range(len(blob)) if place not in taken]


def test_gaps_are_written_as_zeros_and_never_looked_at():
    """Padding and gaps may hold anything (C13)."""
    arrays, plan, blob = three()
    places = gaps(plan, blob)
    assert 2 * 256 - 5 - 4 < len(places)
    assert {0} == {blob[place] for place in places}
    odd = bytearray(blob)
    for place in places:
        odd[place] = 0xA5
    for name, tensor in Reader.from_bytes(odd).items():
        assert arrays[name].tolist() == tensor.numpy().tolist()


@pytest.mark.parametrize("padding", [0, 300])
def test_offsets_count_from_the_data_start(padding):
    """So longer metadata moves no offset, and a start on 256 is one in the file (C14)."""
    arrays, plain, _ = three()
    plan = Writer(arrays, metadata={"k": "v" * padding}).plan()
    blob = plan.into_bytes()
    start = Reader.from_bytes(blob).header.data_start
    assert (start > 256) == bool(padding)
    assert [(e.start, e.end) for e in plain.entries] == [(e.start, e.end) for e in plan.entries]
    for entry in plan.entries:
        assert 0 == (start + entry.start) % ALIGNMENT
        assert arrays[entry.name].tobytes() == blob[start + entry.start : start + entry.end]


@given(size=st.integers(0, 3000))
def test_the_padding_is_minimal(size):
    """For any size of the metadata the data start is aligned and less than 256 bytes away."""
    start = Header(size).data_start
    assert start % ALIGNMENT == 0
    assert 0 <= start - (10 + size) < ALIGNMENT


@pytest.mark.parametrize(
    ("blob", "error", "words"),
    [
        (b"", InvalidHeader, "an empty file"),
        (b"NRUB", InvalidHeader, "4 bytes are too few"),
        (b"NRUB\x01\x00\x00\x00\x00", InvalidHeader, "9 bytes are too few"),
        (b"XXXX" + bytes(300), InvalidMagicNumber, "58 58 58 58"),
        (b"BURN" + bytes(300), InvalidMagicNumber, "big-endian"),
        (b"NRUB\x02\x00" + bytes(300), InvalidVersion, "version 2"),
        (b"NRUB\xff\xff" + bytes(300), InvalidVersion, "version 65535"),
        (b"NRUB\x01\x00\xff\xff\xff\xff" + bytes(300), LimitError, "4294967295 bytes of metadata"),
        (b"NRUB\x01\x00\x01\x00\x40\x06" + bytes(300), LimitError, "the limit is 104857600"),
        (b"NRUB\x01\x00\x00\x00\x40\x06" + bytes(300), InvalidHeader, "310 bytes in all"),
        (b"NRUB\x01\x00\x01\x00\x00\x00", InvalidHeader, "announces 1 bytes of metadata"),
    ],
)
def test_broken_headers_have_their_own_errors(blob, error, words):
    """Each fault in the order of C75 has its kind and says what was found (bug A7)."""
    with pytest.raises(error, match=words) as caught:
        Reader.from_bytes(blob)
    assert error is type(caught.value)


def test_versions_0_and_1_are_read():
    """A version below the current one is accepted (C7)."""
    blob = bytearray(Writer({"w": np.ones(2)}).plan().into_bytes())
    blob[4] = 0
    assert 0 == Reader.from_bytes(blob).header.version


def test_an_empty_pack_is_256_bytes_and_may_lack_its_padding():
    """C17 and C18: Burn's empty file exactly; without tensors the padding is not missed."""
    blob = Writer({}).plan().into_bytes()
    assert bytes.fromhex("4e525542 0100 0a000000 a16774656e736f7273a0") + bytes(236) == blob
    assert 0 == len(Reader.from_bytes(blob[:20]))
