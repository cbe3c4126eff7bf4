"""Opening and access (C75 to C87; burn-pack's round_trip.rs, errors.rs)."""

from __future__ import annotations

import gc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite import testing as bt
from bpk_lite.pack import (
    BytesSource,
    DType,
    FormatError,
    LimitError,
    Limits,
    QuantScheme,
    Reader,
    ReadError,
    Tensor,
    TensorClosedError,
    TensorNotFound,
    TruncatedError,
    ValidationError,
    Writer,
)
from tests.pack.test_dtype import SIZES
from tests.support import descriptor, pack_of, rewritten, verdict


def small():
    return Writer(
        {"b": np.arange(3, dtype="<f4"), "a": np.ones((2, 2), "<i8")}, metadata={"k": "v"}
    ).plan()


@given(
    tensors=st.lists(bt.tensors(), max_size=5, unique_by=lambda tensor: tensor.name),
    metadata=bt.metadata(),
    scalars=st.dictionaries(bt.names(), bt.scalars(), max_size=4),
)
def test_whatever_is_written_is_read(tensors, metadata, scalars):
    """Names, dtypes, shapes, ids, bytes, metadata and scalars survive, in byte order of names."""
    plan = Writer(tensors, metadata=metadata, scalars=scalars).plan()
    blob = plan.into_bytes()
    pack = Reader.from_bytes(blob)
    assert plan.size == len(blob) == pack.nbytes
    assert sorted((t.name for t in tensors), key=str.encode) == list(pack)
    for want in tensors:
        found = pack[want.name]
        assert (want.dtype, want.shape, want.param_id, want.to_bytes()) == (
            found.dtype, found.shape, found.param_id, found.to_bytes(),
        )  # fmt: skip
    assert (metadata, scalars) == (pack.metadata, pack.scalars)
    assert [entry.name for entry in plan.entries] == [t.name for t in tensors]
    assert all(entry.start % 256 == 0 for entry in plan.entries)


def test_a_pack_is_a_mapping():
    """Length, containment, iteration, items and get are a mapping's."""
    pack = Reader.from_bytes(small().into_bytes())
    assert (2, ["a", "b"], True, False) == (len(pack), list(pack), "a" in pack, "c" in pack)
    assert [("a", (2, 2)), ("b", (3,))] == [(name, t.shape) for name, t in pack.items()]
    assert pack.get("c") is None
    assert ["b", "a"] == [t.name for t in pack.tensors(order="data")]
    assert "<Reader <bytes>: 2 tensors, 44 B, 1 metadata>" == repr(pack)
    assert pack == pack
    assert pack != Reader.from_bytes(small().into_bytes())
    with pytest.raises(TypeError):
        pack.metadata["k"] = "w"


def test_an_unknown_name_is_a_key_error_with_close_names():
    """The message names the pack and what was probably meant (C83)."""
    pack = Reader.from_bytes(Writer({"fc.weight": np.ones(1)}).plan().into_bytes())
    with pytest.raises(KeyError) as caught:
        pack["fc.wieght"]
    assert TensorNotFound is caught.type
    assert "<bytes> has no tensor 'fc.wieght' among its 1; did you mean 'fc.weight'?" == str(
        caught.value
    )


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, "u1")])
def test_opening_a_buffer_copies_no_tensor_bytes(wrap):
    """Every tensor is a view of the caller's buffer, whatever it is (C84)."""
    buffer = wrap(small().into_bytes())
    pack = Reader.from_bytes(buffer)
    for tensor in pack.values():
        assert np.shares_memory(tensor.numpy(), np.frombuffer(buffer, np.uint8))
        assert tensor.buffer().readonly


def test_a_buffer_must_be_contiguous():
    """A strided buffer is refused rather than copied."""
    with pytest.raises(TypeError, match="not contiguous"):
        Reader.from_bytes(memoryview(bytes(600))[::2])


def test_a_closed_pack_gives_no_new_data_and_old_arrays_live_on():
    """Closing may be done twice; what was taken stays valid."""
    with Reader.from_bytes(small().into_bytes()) as pack:
        tensor = pack["a"]
        array = tensor.numpy()
    pack.close()
    assert 4 == array.sum()
    with pytest.raises(TensorClosedError, match="has been closed"):
        tensor.numpy()


def test_order_of_faults_by_name_then_range_then_length():
    """The first faulty name is reported, its range before its length, truncation last (C125)."""
    bad_length = descriptor(offsets=(0, 4))
    bad_range = descriptor(offsets=(8, 0))
    assert "b" in error_of({"a": descriptor(), "b": bad_range, "c": bad_length})
    assert "'b' declares 4" in error_of({"c": bad_range, "a": descriptor(), "b": bad_length})
    both = descriptor(shape=(9,), offsets=(8, 0))
    assert "ends at 0, before its start at 8" in error_of({"a": both})
    assert "declares" in error_of({"a": descriptor(offsets=(0, 1 << 20)), "b": bad_range})


def error_of(tensors):
    with pytest.raises(ValidationError) as caught:
        Reader.from_bytes(pack_of(tensors))
    return str(caught.value)


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ((0, 2**64 - 1, 2**64 - 1), True), ((2**64 - 1, 0), True), ((2**64 - 1, 2, 0), False),
        ((2**32, 2**32), False), ((2**63, 2), False), ((2**42 + 1, 2**22), False),
    ],
)  # fmt: skip
def test_sizes_are_multiplied_as_burn_does(shape, fits):
    """From left to right in u64, overflow is a fault (C126; bugs A1, A9)."""
    blob = pack_of({"a": descriptor(shape=shape, offsets=(0, 0))})
    assert ("accept" if fits else "ValidationError") == verdict(blob)


@pytest.mark.parametrize("off", [-1, 1])
@pytest.mark.parametrize("name", SIZES)
def test_every_length_is_compared_when_a_pack_is_opened(name, off):
    """One byte or one element too many or too few is refused, for every plain dtype (C123)."""
    dtype, size = DType.parse(name).to_cbor(), SIZES[name]
    assert "accept" == verdict(pack_of({"a": descriptor(dtype, (3,), (0, 3 * size))}, bytes(64)))
    for step in {1, size}:
        end = 3 * size + off * step
        blob = pack_of({"a": descriptor(dtype, (3,), (0, end))}, bytes(64))
        with pytest.raises(ValidationError, match=rf"'a' declares {end} bytes.* {3 * size}"):
            Reader.from_bytes(blob)


@pytest.mark.parametrize("shape", [(3,), (2**32, 2**32)])
@pytest.mark.parametrize("size", [0, 5])
def test_quantized_lengths_are_not_compared(shape, size):
    """Any length, none at all, and a shape whose product overflows open (C123)."""
    dtype = DType.quantized(QuantScheme("Q8S", "Native")).to_cbor()
    blob = pack_of({"a": descriptor(dtype, shape, (0, size))}, bytes(size))
    tensor = Reader.from_bytes(blob)["a"]
    assert (shape, size) == (tensor.shape, tensor.nbytes)


@pytest.mark.parametrize("cut", [1, 3, 12])
def test_a_truncated_pack_says_how_much_is_missing(cut):
    """Measured from the aligned data start (C77); it is an EOFError too."""
    blob = Writer({"a": np.arange(3, dtype="<f4")}).plan().into_bytes()
    with pytest.raises(EOFError, match=rf"tensors end at {len(blob)}: {cut} are missing") as caught:
        Reader.from_bytes(blob[:-cut])
    assert TruncatedError is caught.type


def test_the_unaligned_packs_of_burn_0_19_are_recognised():
    """Data right behind the metadata are named for what they are (section 16).

    The version, 1 in both, does not tell (C8).
    """
    blob = pack_of({"a": descriptor()})
    unaligned = blob[: 10 + int.from_bytes(blob[6:10], "little")] + bytes(8)
    with pytest.raises(TruncatedError, match=r"unaligned pack, as Burn 0\.19"):
        Reader.from_bytes(unaligned)


def unaligned(tensors, data):
    """Return a pack as Burn 0.19 wrote them: no gaps, booleans as plain text (section 16)."""
    blob = pack_of(tensors, b"")
    return blob[: 10 + int.from_bytes(blob[6:10], "little")] + data


def test_the_unaligned_packs_of_burn_0_19_are_read_on_request():
    """The data lie right behind the metadata; the text Bool is a boolean."""
    blob = unaligned(
        {"a": descriptor("F32", (2,), (0, 8)), "b": descriptor("Bool", (3,), (8, 11))},
        np.array([1.5, 2.5], "<f4").tobytes() + bytes([1, 0, 1]),
    )
    with pytest.raises(FormatError):
        Reader.from_bytes(blob)
    pack = Reader.from_bytes(blob, layout="unaligned")
    assert [1.5, 2.5] == pack["a"].numpy().tolist()
    assert [True, False, True] == pack["b"].numpy().tolist()
    today = Writer(pack.tensors()).plan().into_bytes()
    assert [1.5, 2.5] == Reader.from_bytes(today)["a"].numpy().tolist()
    assert DType.BOOL == Reader.from_bytes(today)["b"].dtype


def test_a_pack_of_today_is_not_read_as_unaligned():
    """Its bytes would be shifted, so it is refused; and there are two layouts only."""
    blob = Writer({"a": np.arange(3, dtype="<f4")}).plan().into_bytes()
    with pytest.raises(ValidationError, match="no unaligned pack"):
        Reader.from_bytes(blob, layout="unaligned")
    with pytest.raises(ValueError, match="aligned or unaligned"):
        Reader.from_bytes(blob, layout="packed")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(metadata=20), "the limit is 20"),
        (Limits(tensors=1), "2 tensors; the limit is 1"),
        (Limits(tensor_bytes=31), "'a' has 32 bytes; the limit is 31"),
    ],
)
def test_limits_are_settable_and_inclusive(limits, words):
    """One below fails, the exact value passes (C78)."""
    blob = small().into_bytes()
    with pytest.raises(LimitError, match=words):
        Reader.from_bytes(blob, limits=limits)
    exact = Limits(metadata=int.from_bytes(blob[6:10], "little"), tensors=2, tensor_bytes=32)
    assert 2 == len(Reader.from_bytes(blob, limits=exact))


class HugeSource(BytesSource):
    """A pack whose data are said to be there, and are not."""

    def __init__(self, blob, data):
        super().__init__(blob)
        self.whole = len(blob) + data

    @property
    def size(self):
        return self.whole


def test_limits_may_be_raised():
    """A tensor beyond Burn's limit opens when a reader is told so, as in Burn 0.23 (C78, R116)."""
    size = (10 << 30) + 1
    blob = pack_of({"a": descriptor("U8", (size,), (0, size))})
    with pytest.raises(LimitError, match=f"the limit is {size - 1}"):
        Reader.from_source(HugeSource(blob, size))
    pack = Reader.from_source(HugeSource(blob, size), limits=Limits(tensor_bytes=size))
    assert size == pack["a"].nbytes


def test_a_limit_on_nesting_is_a_metadata_error():
    """CBOR nested too deeply is refused while it is decoded (C61)."""
    assert "MetadataDeserializationError" == verdict(
        small().into_bytes(), lambda blob: Reader.from_bytes(blob, limits=Limits(depth=2))
    )


def test_the_garbage_collector_is_left_as_it_was():
    """Opening pauses the collector and restores it, also after an error."""
    for blob in (small().into_bytes(), b"nonsense"):
        verdict(blob)
        assert gc.isenabled()
        gc.disable()
        try:
            verdict(blob)
            assert not gc.isenabled()
        finally:
            gc.enable()


class ClosingSource(BytesSource):
    """Remembers that it was closed."""

    closed = False

    def close(self):
        self.closed = True
        super().close()


def test_a_source_is_closed_when_opening_fails():
    """A broken pack leaves no source open."""
    source = ClosingSource(b"nonsense")
    assert "InvalidHeader" == verdict(source, Reader.from_source)
    assert source.closed


@pytest.mark.parametrize("zipped", [False, True])
def test_static_packs_come_from_package_data(tmp_path, monkeypatch, zipped):
    """A resource of a package, in a folder or a zip, is read by its loader and viewed, not copied."""
    blob = small().into_bytes()
    name = f"embedded_{'zip' if zipped else 'folder'}"
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}/weights/model.bpk", blob)
        if not zipped:
            archive.extractall(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "package.zip" if zipped else tmp_path)
    pack = Reader.from_static(name, "weights/model.bpk")
    assert f"{name}:weights/model.bpk" == pack.source.name
    assert blob == rewritten(pack)
    assert np.shares_memory(pack["a"].numpy(), pack["a"].numpy())
    with pytest.raises(ReadError, match=rf"no resource 'none\.bpk' in package '{name}'"):
        Reader.from_static(name, "none.bpk")
    with pytest.raises(ReadError, match="no_such_package"):
        Reader.from_static("no_such_package", "model.bpk")


def test_opening_builds_no_object_per_tensor():
    """A thousand tensors open in a handful of objects beyond the decoded CBOR."""
    blob = Writer([Tensor.from_bytes(f"t{i}", "U8", (1,), b"x") for i in range(1000)]).plan()
    data = blob.into_bytes()
    Reader.from_bytes(data)
    gc.collect()
    before = sum(type(o) is Tensor for o in gc.get_objects())
    pack = Reader.from_bytes(data)
    assert before == sum(type(o) is Tensor for o in gc.get_objects())
    assert 1000 == len(pack)
