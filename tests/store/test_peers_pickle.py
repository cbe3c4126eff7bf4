"""Pickles and archives made by hand: what the public tests of pytorch-reader and bug reports check."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from bpk_lite.pack import BpkError, FormatError, LimitError, ReadError
from bpk_lite.store import PickleError, PytorchReader, read_pickle_data
from tests.store.zoo import FOLDER

FILES = FOLDER / "pytorch"


def text(value):
    """Return the opcode that pushes text."""
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def storage(key="0", count=6, kind="FloatStorage"):
    """Return the opcodes that push a storage."""
    cls = f"ctorch\n{kind}\n".encode()
    return b"(" + text("storage") + cls + text(key) + text("cpu") + b"K" + bytes([count]) + b"tQ"


def tensor(offset=0, shape=(2, 3), strides=(3, 1), *, inner=None, count=6):
    """Return the opcodes that push a tensor."""
    dims = [b"(" + b"".join(b"K" + bytes([n]) for n in part) + b"t" for part in (shape, strides)]
    made = b"(" + (inner or storage(count=count)) + b"K" + bytes([offset]) + b"".join(dims)
    return b"ctorch._utils\n_rebuild_tensor_v2\n" + made + b"\x89}tR"


def archive(pickle, entries=None, *, method=zipfile.ZIP_STORED, root="net/"):
    """Return a checkpoint of a pickle and storages; the first is 0 to 5 unless given."""
    stream = io.BytesIO()
    given = {"0": np.arange(6, dtype="f4").tobytes()} if entries is None else entries
    with zipfile.ZipFile(stream, "w", method) as file:
        file.writestr(root + "data.pkl", pickle)
        for key, data in given.items():
            file.writestr(f"{root}data/{key}", data)
    return stream.getvalue()


def opened(*parts, **given):
    """Open a checkpoint that is a dict of these opcodes."""
    return PytorchReader.from_bytes(archive(b"\x80\x02}(" + b"".join(parts) + b"u.", **given))


@pytest.mark.parametrize(
    ("pickle", "words"),
    [
        (b"\x80\x02(\x85.", "takes a value where there is none"),
        (b"\x80\x02(q\x00.", "changes a value where there is none"),
        (b"\x80\x02(.", "takes a value where there is none"),
        (b"\x80\x02}(NNNu.", "a key without a value"),
        (b"\x80\x02K\x01K\x02s.", "changes a value where there is none"),
        (b"(dVbad \\uZZZZ\nNs.", "broken"),
        (b"(dVa\nL12x4L\ns.", "broken"),
        (b"\x80\x02ccollections\nOrderedDict\nK\x03\x85R.", "not made of pairs"),
        (b"\x80\x02c__builtin__\nset\n]]\x86R.", "a set is made of a list"),
        (b"\x80\x02c__builtin__\nfrozenset\nK\x01\x85R.", "a set is made of a list"),
        (b"\x80\x02]N\x8c\x01a\x93.", "by something that is no text"),
        (b"\x80\x02cos\nsystem\n]R.", "expected a tuple"),
        (b"\x80\x02}(]Nu.", "a list is a key"),
        (b"\x80\x02}X\xff\xff\xff\x7fab", "broken|beyond"),
    ],
)
def test_pickles_that_say_what_cannot_be(pickle, words):
    """Each is a `PickleError` of its own words; no error of Python's gets out (bugs C12, C15)."""
    with pytest.raises(PickleError, match=words):
        read_pickle_data(pickle)


def memo(key):
    """Return the opcode that recalls a value."""
    return b"j" + struct.pack("<I", key)


NESTED = {
    "lists, from the outside": lambda n: b"]" * n + b"a" * (n - 1),
    "lists, by the memo": lambda n: (
        b"]\x94" + b"".join(memo(i) + b"]\x94a" for i in range(n - 1)) + memo(0)
    ),
    "tuples": lambda n: b"N" + b"\x85" * n,
    "dicts": lambda n: b"}N" * (n - 1) + b"}" + b"s" * (n - 1),
    "objects": lambda n: b"cx\nY\n)\x81" * n + b"b" * (n - 1),
    "arguments": lambda n: b"cx\nY\n" * n + b")" + b"R\x85" * n,
}


@pytest.mark.parametrize("name", NESTED)
def test_nesting_has_a_limit(name):
    """Thirty thousand levels are refused and freed again; 900 are read (S137; bug B2)."""
    with PytorchReader.from_bytes(archive(b"\x80\x02" + NESTED[name](450) + b"0}.")) as reader:
        assert [] == list(reader)
    for ending in (b".", b"0}.", b"K\x01K\x02s.", b"Q."):
        with pytest.raises((LimitError, PickleError)):
            PytorchReader.from_bytes(archive(b"\x80\x02" + NESTED[name](30_000) + ending))


def test_a_long_way_round_is_no_nesting():
    """Thousands of values side by side, each of them twice, are two levels."""
    flat = b"]\x94(" + b"".join(b"N\x852" for _ in range(5000)) + b"e"
    assert 10_000 == len(read_pickle_data(b"\x80\x02" + flat + b"."))


def test_a_mark_may_be_dropped():
    """POP takes it away, as in Python."""
    assert {"a": 1} == read_pickle_data(b"\x80\x02}(0" + text("a") + b"K\x01s.")


def test_text_escapes_are_pythons():
    """Latin-1 and escapes by number, as protocol 0 has them."""
    assert {"k": "é€\\"} == read_pickle_data(b"(dVk\nV\xe9\\u20ac\\u005c\ns.")


def test_a_length_that_is_not_there_allocates_nothing():
    """Four gigabytes are claimed by twelve bytes."""
    tracemalloc.start()
    try:
        for opcode in (b"X", b"B", b"T", b"\x8d\xff\xff\xff\xff"):
            with pytest.raises(PickleError):
                read_pickle_data(b"\x80\x04" + opcode + b"\xff\xff\xff\xff" + b"ab")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_state_set_on_a_tensor_is_refused():
    """Python would let it change what the tensor is; torch never writes it."""
    with pytest.raises(PickleError, match="state on a tensor"):
        opened(text("w"), tensor(), b"}b")


def test_a_state_set_on_a_dict_replaces_no_item():
    """The attributes of a state dict may add names, not change its tensors (S133)."""
    state = b"}(" + text("w") + b"K\x01" + text("_metadata") + b"}u"
    blob = archive(b"\x80\x02}(" + text("w") + tensor() + b"u" + state + b"b.")
    with PytorchReader.from_bytes(blob) as reader:
        assert ["w"] == list(reader)
    assert ["w", "_metadata"] == list(read_pickle_data(blob))


def test_the_oldest_call_takes_offset_and_strides():
    """Contiguous, permuted, and a scalar at an offset (S135)."""
    for offset, shape, strides, wanted in (
        (0, (2, 3), (3, 1), [[0, 1, 2], [3, 4, 5]]),
        (0, (3, 2), (1, 3), [[0, 3], [1, 4], [2, 5]]),
        (4, (), (), 4),
    ):
        call = tensor(offset, shape, strides).replace(b"_v2\n", b"\n").replace(b"\x89}tR", b"tR")
        with opened(text("w"), call) as reader:
            assert np.array_equal(np.array(wanted, "f4"), reader["w"].numpy())


def test_errors_of_reading_begin_with_the_tensors_name():
    """Whoever reads a file knows names, not storages (S148)."""
    for entries, words in (
        ({}, "missing from the archive"),
        ({"0": bytes(8)}, "only 8 are available"),
    ):
        with (
            opened(text("fc.weight"), tensor(), entries=entries) as reader,
            pytest.raises(FormatError, match=rf"^tensor 'fc\.weight': .*{words}"),
        ):
            reader["fc.weight"].to_bytes()


# -- archives


def patched(blob, path, change):
    """Change an entry's record in the directory and its own header, which `change` is given."""
    data, raw = bytearray(blob), path.encode()
    local, record = data.index(raw) - 30, data.rindex(raw) - 46
    change(data, local, record)
    return bytes(data)


def set_u32(data, at, value):
    data[at : at + 4] = struct.pack("<I", value)


def wrong_crc(data, local, record):
    set_u32(data, record + 16, 1)


def beyond_the_end(data, local, record):
    set_u32(data, record + 42, 1 << 30)


def two_sizes(data, local, record):
    set_u32(data, record + 20, 23)


def encrypted(data, local, record):
    data[record + 8] |= 1


def other_name(data, local, record):
    data[local + 30] ^= 1


def unknown_method(data, local, record):
    data[record + 10] = 12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (wrong_crc, "Invalid checksum"),
        (beyond_the_end, "beyond its end"),
        (two_sizes, "has two sizes: 23 and 24"),
        (encrypted, "is encrypted"),
        (other_name, "contradict each other"),
        (unknown_method, "compressed by method 12"),
    ],
)
def test_a_directory_that_lies_is_found_out(change, words):
    """When the tensor is read; its name is in the message (S122; bug C16)."""
    blob = patched(archive(b"\x80\x02}" + text("w") + tensor() + b"s."), "net/data/0", change)
    with (
        PytorchReader.from_bytes(blob) as reader,
        pytest.raises(FormatError, match=f"^tensor 'w'.*{words}"),
    ):
        reader["w"].to_bytes()


def test_two_entries_of_one_name_are_refused():
    """Which one counts would be a matter of the reader (bug C16)."""
    stream = io.BytesIO(archive(b"\x80\x02}" + text("w") + tensor() + b"s."))
    with (
        zipfile.ZipFile(stream, "a") as file,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        file.writestr("net/data/0", bytes(24))
    with pytest.raises(FormatError, match="two entries 'net/data/0'"):
        PytorchReader.from_bytes(stream.getvalue())


def test_storages_come_from_beside_the_pickle():
    """Not from another root of the archive (S118, S120; bug C16)."""
    stream = io.BytesIO(archive(b"\x80\x02}" + text("w") + tensor() + b"s.", root="a/"))
    with zipfile.ZipFile(stream, "a") as file:
        file.writestr("longer/data.pkl", b"\x80\x02}.")
        file.writestr("longer/data/0", np.ones(6, "f4").tobytes())
    with PytorchReader.from_bytes(stream.getvalue()) as reader:
        assert np.array_equal(np.arange(6, dtype="f4").reshape(2, 3), reader["w"].numpy())


def test_compressed_storages_are_read_at_any_offset():
    """Views at offsets and a permuted one of a deflated entry (S120)."""
    parts = (text("a"), tensor(2, (4,), (1,)), text("b"), tensor(1, (2, 2), (1, 2)))
    with opened(*parts, method=zipfile.ZIP_DEFLATED) as reader:
        assert [2, 3, 4, 5] == reader["a"].numpy().tolist()
        assert [[1, 3], [2, 4]] == reader["b"].numpy().tolist()


def test_a_damaged_compressed_storage_is_an_error():
    """By its checksum, or because it is no deflate stream (S122)."""
    noise = np.random.default_rng(0).random(6).astype("f4").tobytes()
    pickle = b"\x80\x02}" + text("w") + tensor() + b"s."
    blob = archive(pickle, {"0": noise}, method=zipfile.ZIP_DEFLATED)
    packed = zlib.compressobj(6, zlib.DEFLATED, -15)
    start = blob.index(packed.compress(noise) + packed.flush())
    for at, value in ((start, 0xFF), (start + 12, blob[start + 12] ^ 1)):
        broken = blob[:at] + bytes([value]) + blob[at + 1 :]
        with (
            PytorchReader.from_bytes(broken) as reader,
            pytest.raises(FormatError, match=r"^tensor"),
        ):
            reader["w"].to_bytes()


def test_a_zip_bomb_stays_packed():
    """Megabytes of zeros in kilobytes are refused, in little memory (bug C21)."""
    huge = storage().replace(b"K\x06tQ", b"J\x00\x00\x00\x01tQ")
    blob = archive(
        b"\x80\x02}" + text("w") + tensor(0, (), (), inner=huge) + b"s.",
        {"0": bytes(64 << 20)},
        method=zipfile.ZIP_DEFLATED,
    )
    tracemalloc.start()
    try:
        with (
            PytorchReader.from_bytes(blob) as reader,
            pytest.raises(LimitError, match="would grow"),
        ):
            reader["w"].to_bytes()
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_pickle_of_another_extension_is_no_matter(tmp_path):
    """Files are told by their bytes (S116)."""
    blob = (FILES / "legacy_basic.pt").read_bytes()
    for name in ("x.safetensors", "x.zip", "x"):
        path = tmp_path / name
        path.write_bytes(blob)
        with PytorchReader.from_file(path) as reader:
            assert ("legacy", 3) == (reader.info.kind, len(reader))


def test_a_missing_file_keeps_the_systems_error(tmp_path):
    """As the cause of ours (S148)."""
    with pytest.raises(ReadError) as caught:
        PytorchReader.from_file(tmp_path / "none.pt")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_closing_is_idempotent_and_ends_reading():
    """A closed checkpoint says so."""
    reader = opened(text("w"), tensor())
    reader.close()
    reader.close()
    with pytest.raises(BpkError, match="closed"):
        reader["w"].to_bytes()
