"""Tensors: resident, deferred, windows (C89, C93, C98, C129; burn-pack's tensor.rs)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite import testing as bt
from bpk_lite.pack import (
    BytesSource,
    DType,
    PlanError,
    ProviderError,
    Reader,
    Tensor,
    TensorBytesSizeMismatch,
    ValidationError,
    Writer,
)


def read_back(tensor):
    return Reader.from_bytes(Writer([tensor]).plan().into_bytes())[tensor.name]


def test_a_tensor_describes_itself_without_its_data():
    """Name, dtype, shape, size and id are there, and printing calls no provider (C129)."""

    def provider():
        raise AssertionError

    tensor = Tensor.deferred("fc.weight", "F32", (784, 128), provider, param_id=7)
    assert "<Tensor fc.weight F32 [784, 128] 392 KiB>" == repr(tensor)
    assert (DType.F32, (784, 128), 2, 100352, 401408, 7, 784) == (
        tensor.dtype, tensor.shape, tensor.ndim, tensor.size, tensor.nbytes, tensor.param_id,
        len(tensor),
    )  # fmt: skip


def test_names_are_escaped_when_printed():
    """Control characters and direction overrides of a name do not reach a terminal (bug B10)."""
    tensor = Tensor.from_bytes("a\x1b[31m\n\u202eb", "U8", (0,), b"")
    assert r"<Tensor a\x1b[31m\n\u202eb U8 [0] 0 B>" == repr(tensor)


def test_resident_bytes_read_the_same_twice():
    """Reading does not consume."""
    tensor = Tensor.from_bytes("w", "U8", (3,), b"abc")
    assert (b"abc", b"abc") == (tensor.to_bytes(), tensor.to_bytes())


def test_a_provider_runs_at_every_access_and_its_error_comes_through():
    """Nothing is cached outside a save, and an error is the provider's own (C98, C100)."""
    calls = []

    def provider():
        calls.append(1)
        if len(calls) == 3:
            raise KeyError("gone")
        return b"abc"

    tensor = Tensor.deferred("w", "U8", (3,), provider)
    assert b"abc" == tensor.to_bytes() == tensor.to_bytes()
    with pytest.raises(KeyError, match="gone"):
        tensor.numpy()
    assert 3 == len(calls)


@pytest.mark.parametrize(
    "made",
    [b"abcd", bytearray(b"abcd"), np.frombuffer(b"abcd", "u1"), np.frombuffer(b"abcd", "<f4")],
)
def test_a_provider_may_return_any_buffer_or_array(made):
    """One buffer, or pieces of them, reused or not, give the same bytes."""
    assert b"abcd" == Tensor.deferred("w", "F32", (1,), lambda: made).to_bytes()
    pieces = Tensor.deferred("w", "F32", (2,), lambda: iter([made, made]))
    assert b"abcdabcd" == read_back(pieces).to_bytes() == pieces.to_bytes()


def test_a_provider_may_reuse_the_memory_of_its_pieces():
    """A piece is consumed before the next is made, in a save and outside."""

    def provider():
        staging = bytearray(2)
        for part in (b"ab", b"cd"):
            staging[:] = part
            yield staging

    tensor = Tensor.deferred("w", "F32", (1,), provider)
    assert b"abcd" == tensor.to_bytes() == read_back(tensor).to_bytes()


@pytest.mark.parametrize("made", [None, 3, [1, 2, 3, 4]])
def test_a_provider_that_returns_something_else_is_named(made):
    """The error of a save names the tensor and the type (C100)."""
    plan = Writer([Tensor.deferred("fc.w", "F32", (1,), lambda: made)]).plan()
    with pytest.raises(ProviderError, match=r"'fc\.w' failed: TypeError"):
        plan.into_bytes()


@pytest.mark.parametrize("given", [b"abc", b"abcde", b""])
def test_a_provider_of_another_length_is_refused(given):
    """Both numbers and the name are in the error, in a save and outside (C93)."""
    tensor = Tensor.deferred("w", "F32", (1,), lambda: given)
    for use in (tensor.to_bytes, Writer([tensor]).plan().into_bytes):
        with pytest.raises(TensorBytesSizeMismatch, match=rf"'w' declares 4 bytes.*{len(given)}"):
            use()


def test_a_surplus_is_noticed_before_it_is_written():
    """An endless provider is stopped at its first surplus piece."""

    def endless():
        while True:
            yield b"abcd"

    seen = []
    with pytest.raises(TensorBytesSizeMismatch):
        seen.extend(map(bytes, Tensor.deferred("w", "U8", (8,), endless).pieces()))
    assert [b"abcd", b"abcd"] == seen


def test_lengths_that_contradict_the_shape_are_refused_when_made():
    """Declared and needed bytes are both named (C92)."""
    with pytest.raises(PlanError, match=r"'w' declares 3 bytes, but F32 of shape \[1\] needs 4"):
        Tensor.from_bytes("w", "F32", (1,), b"abc")
    with pytest.raises(PlanError, match="declares 3 bytes"):
        Tensor.deferred("w", "F32", (1,), lambda: b"", nbytes=3)
    with pytest.raises(PlanError, match="give nbytes"):
        Tensor.deferred("w", "F32", (2**40, 2**40), lambda: b"")


@given(data=st.data())
def test_any_layout_and_byte_order_is_stored_by_value(data):
    """Strides, negative strides, transposes, broadcasts and big-endian arrays (bug D1's kind).

    The bytes are in row-major order and little-endian, without gaps (C71).
    """
    code = data.draw(st.sampled_from(["<f4", ">f4", ">i2", "<u8", "?", ">f8", "<f2", "i1"]))
    shape = data.draw(bt.shapes(max_dims=3))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    array = (rng.integers(0, 2, shape) * 3 % 5).astype(code)
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    steps = data.draw(st.tuples(*[st.sampled_from([1, -1, 2, -2])] * array.ndim))
    array = array[tuple(slice(None, None, step) for step in steps)]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array, (2, *array.shape))
    stored = read_back(Tensor.from_array("x", array))
    assert array.astype(array.dtype.newbyteorder("<")).tobytes("C") == stored.to_bytes()
    found = stored.numpy()
    assert array.shape == found.shape
    assert array.tolist() == found.tolist()


def test_numpy_scalars_and_objects_with_the_array_protocol_are_accepted():
    """`__array__` is enough."""

    class Quacks:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.5], np.float32)

    assert [1.5] == Tensor.from_array("q", Quacks()).numpy().tolist()
    assert 2.0 == Tensor.from_array("s", np.float64(2)).numpy()


@pytest.mark.parametrize("value", ["text", 3, [1.0], {"a": 1}, None])
def test_values_that_are_no_arrays_are_refused(value):
    """Lists and numbers are not guessed at; the error names tensor and type."""
    with pytest.raises(PlanError, match=r"tensor 'x': .*not (str|int|list|dict|NoneType)"):
        Writer({"x": value})


@pytest.mark.parametrize(
    ("code", "dtype", "stored"),
    [("u2", "BF16", "BF16"), ("f4", "Flex32", "Flex32"), ("?", "Bool(U32)", "Bool(U32)"),
     ("?", "Bool(U8)", "Bool(U8)"), ("u1", "Bool(U8)", "Bool(U8)"), ("<u4", "Bool(U32)", "Bool(U32)")],
)  # fmt: skip
def test_types_that_numpy_lacks_are_given_by_name(code, dtype, stored):
    """`dtype=` reinterprets elements of the same size."""
    tensor = read_back(Tensor.from_array("x", np.ones(2, code), dtype=dtype))
    assert (stored, 2) == (str(tensor.dtype), len(tensor.numpy()))


@pytest.mark.parametrize(("code", "dtype"), [("f8", "F32"), ("i4", "U32"), ("f2", "BF16")])
def test_values_are_never_cast_silently(code, dtype):
    """Another element type is an error, not a conversion."""
    with pytest.raises(TypeError, match="cast it first"):
        Tensor.from_array("x", np.ones(2, code), dtype=dtype)


def test_booleans_are_checked_to_be_0_or_1():
    """A stored 7 is no numpy bool; the bytes stay reachable (C72)."""
    for dtype, data in (("Bool", b"\0\1\7"), ("Bool(U8)", b"\0\1\7")):
        tensor = Tensor.from_bytes("m", dtype, (3,), data)
        with pytest.raises(ValidationError, match=r"'m' is Bool.* holds 7"):
            tensor.numpy()
        assert data == tensor.to_bytes()
    wide = Tensor.from_bytes("m", "Bool(U32)", (2,), np.array([1, 0], "<u4").tobytes())
    assert [True, False] == wide.numpy().tolist()
    assert [True] == wide[:1].tolist()


@pytest.mark.parametrize("dtype", ["F32", "Bool", "U64"])
def test_arrays_over_a_pack_are_read_only_views(dtype):
    """Nothing is copied, and nothing in the file's memory can be changed."""
    values = np.ones((2, 2)).astype(DType.parse(dtype).stored)
    blob = Writer([Tensor.from_bytes("x", dtype, (2, 2), values.tobytes())]).plan().into_bytes()
    array = Reader.from_bytes(blob)["x"].numpy()
    assert np.shares_memory(array, np.frombuffer(blob, np.uint8))
    assert not array.flags.writeable


def test_the_array_protocol_follows_numpy_2():
    """Dtype and copy mean what NumPy says; `copy=False` fails where a copy is needed."""
    tensor = Tensor.from_bytes("x", "F32", (2,), np.ones(2, "<f4").tobytes())
    assert np.float64 == np.asarray(tensor, dtype=np.float64).dtype
    assert np.array(tensor, copy=True).flags.writeable
    assert not np.asarray(tensor).flags.writeable
    with pytest.raises(ValueError, match="copy"):
        np.asarray(tensor, dtype=np.float64, copy=False)
    wide = Tensor.from_bytes("b", "Bool(U32)", (1,), bytes(4))
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(wide, copy=False)


def test_dlpack_carries_values_to_numpy():
    """Numpy's own consumer gets a read-only view; one of an older DLPack gets a copy."""
    tensor = Tensor.from_bytes("x", "F32", (2,), np.ones(2, "<f4").tobytes())
    array = np.from_dlpack(tensor)
    assert [1.0, 1.0] == array.tolist()
    assert np.shares_memory(array, tensor.numpy())
    assert (1, 0) == tensor.__dlpack_device__()
    assert "dltensor" in repr(tensor.__dlpack__())
    with pytest.raises(BufferError, match="needs a copy"):
        tensor.__dlpack__(copy=False)


def test_shapes_that_numpy_cannot_have_are_typed_errors():
    """A huge dimension beside a zero, or a rank above 64, opens but is no array (bug F8)."""
    for shape in ((0, 2**63), (1,) * 70):
        tensor = Tensor.from_bytes("x", "U8", shape, bytes(0 if 0 in shape else 1))
        assert shape == read_back(tensor).shape
        with pytest.raises(ValidationError, match="cannot be a numpy array"):
            tensor.numpy()


def test_tensors_pickle_with_their_bytes():
    """A pickled tensor needs no file."""
    tensor = pickle.loads(
        pickle.dumps(read_back(Tensor.from_bytes("x", "F32", (1,), b"abcd", param_id=3)))
    )
    assert ("x", DType.F32, (1,), b"abcd", 3) == (
        tensor.name, tensor.dtype, tensor.shape, tensor.to_bytes(), tensor.param_id,
    )  # fmt: skip


class CountingSource(BytesSource):
    """Counts the bytes that are asked for."""

    asked = 0

    def read_at(self, offset, length):
        self.asked += length
        return super().read_at(offset, length)


@pytest.mark.parametrize(
    ("key", "elements"),
    [
        (slice(2, 5), 36), (3, 12), ((3, 1), 4), ((3, 1, 2), 1), ((-1, slice(1, 3)), 8),
        (slice(8, 2, -3), 48), (slice(5, 5), 0), ((3, ..., 0), 12), ((3, None), 12),
    ],
)  # fmt: skip
def test_slicing_reads_only_what_it_needs(key, elements):
    """Leading integers and the first slice decide how many bytes are read."""
    values = np.arange(120, dtype="<i4").reshape(10, 3, 4)
    source = CountingSource(Writer({"x": values}).plan().into_bytes())
    tensor = Reader.from_source(source)["x"]
    source.asked = 0
    assert values[key].tolist() == tensor[key].tolist()
    assert elements * 4 == source.asked


@given(data=st.data())
def test_slicing_answers_as_numpy_does(data):
    """Any index, basic or advanced, gives numpy's shape, values and errors."""
    shape = data.draw(bt.shapes(max_dims=3))
    values = np.arange(np.prod(shape, dtype=int), dtype="<i2").reshape(shape)
    tensor = read_back(Tensor.from_array("x", values))
    item = st.one_of(
        st.integers(-6, 6),
        st.slices(6),
        st.just(...),
        st.none(),
        st.booleans(),
        st.lists(st.integers(-2, 2), max_size=2),
        st.integers(0, 2).map(np.int64),
    )
    key = data.draw(item | st.lists(item, max_size=4).map(tuple))
    try:
        expected = values[key]
    except IndexError:
        with pytest.raises(IndexError):
            tensor[key]
        return
    found = tensor[key]
    assert np.shape(expected) == np.shape(found)
    assert np.array_equal(expected, found)


def test_a_rank_0_tensor_has_no_length():
    """`len` fails as numpy's does."""
    with pytest.raises(TypeError, match="no length"):
        len(Tensor.from_bytes("x", "U8", (), b"a"))
