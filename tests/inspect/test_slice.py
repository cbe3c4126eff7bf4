"""Pictures of two axes: the right means, the right elements, and no more read than needed."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from bpk_lite.inspect import SliceError, tensor_slice
from bpk_lite.pack import (
    BytesSource,
    DType,
    LimitError,
    QuantScheme,
    Reader,
    Tensor,
    ValidationError,
    Writer,
)


def noise(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype("f4")


def plane(array, axes, index):
    """Return two axes of an array by plain indexing."""
    key = [index.get(axis, 0) for axis in range(array.ndim)]
    for axis in axes:
        key[axis] = slice(None)
    found = array[tuple(key)]
    return found.T if axes[0] > axes[1] else found


def means(picture, block):
    """Return the mean of every block, slowly."""
    down, across = block
    return np.array([
        [picture[i : i + down, j : j + across].mean() for j in range(0, picture.shape[1], across)]
        for i in range(0, picture.shape[0], down)
    ])  # fmt: skip


CASES = [
    ((30, 41), (0, 1), {}),
    ((30, 41), (1, 0), {}),
    ((5, 30, 41), (0, 2), {1: 3}),
    ((5, 30, 41), (1, 2), {0: 4}),
    ((20, 3, 40, 2), (0, 2), {1: 1, 3: 1}),
    ((20, 3, 40, 2), (2, 0), {1: 1, 3: 1}),
    ((20, 3, 40, 2), (1, 3), {0: 7, 2: 9}),
    ((2, 300, 2, 4), (0, 3), {1: 299, 2: 1}),
]


@pytest.mark.parametrize("window", [1 << 20, 50, 7, 1])
@pytest.mark.parametrize(("shape", "axes", "index"), CASES)
@pytest.mark.parametrize("size", [3, 8, 64, 300])
def test_a_picture_holds_the_means_of_its_blocks(monkeypatch, shape, axes, index, size, window):
    """Any axes in any order, at any index, through windows of any size."""
    monkeypatch.setattr("bpk_lite.inspect._slice._WINDOW", window)
    array = noise(*shape)
    found = tensor_slice(Tensor.from_array("x", array), axes, index, max_size=size)
    right = plane(array.astype("f8"), axes, index)
    assert (right.shape, axes, index) == (found.shape, found.axes, dict(found.index))
    assert max(found.values.shape) <= size
    assert np.float32 == found.values.dtype
    np.testing.assert_allclose(found.values, means(right, found.block), rtol=1e-6, atol=1e-7)
    assert ("all" if found.block == (1, 1) else "mean") == found.method


@pytest.mark.parametrize("window", [1 << 20, 50, 1])
@pytest.mark.parametrize(("shape", "axes", "index"), CASES)
@pytest.mark.parametrize("size", [1, 3, 8])
def test_nearest_shows_the_elements_amid_the_blocks(monkeypatch, shape, axes, index, size, window):
    """Elements as they are, in their places."""
    monkeypatch.setattr("bpk_lite.inspect._slice._WINDOW", window)
    array = noise(*shape)
    tensor = Tensor.from_array("x", array)
    found = tensor_slice(tensor, axes, index, max_size=size, method="nearest")
    right = plane(array, axes, index)
    rows, columns = (
        [min(at + block // 2, extent - 1) for at in range(0, extent, block)]
        for extent, block in zip(right.shape, found.block, strict=True)
    )
    np.testing.assert_array_equal(found.values, right[np.ix_(rows, columns)])


def test_without_arguments_the_last_two_axes_are_shown():
    """At index 0 of the others; negative axes and positions count from the end."""
    array = noise(3, 4, 5)
    tensor = Tensor.from_array("x", array)
    found = tensor_slice(tensor)
    np.testing.assert_array_equal(found.values, array[0])
    assert ((1, 2), {0: 0}, "all") == (found.axes, dict(found.index), found.method)
    np.testing.assert_array_equal(tensor_slice(tensor, (-1, -3), {-2: -1}).values, array[:, -1].T)


@pytest.mark.parametrize(
    ("shape", "picture", "true", "axes"),
    [((), (1, 1), (1, 1), (None, None)), ((5,), (1, 5), (1, 5), (None, 0)),
     ((2000,), (1, 500), (1, 2000), (None, 0)), ((0,), (0, 0), (1, 0), (None, 0)),
     ((0, 3), (0, 0), (0, 3), (0, 1)), ((3, 0, 2), (0, 0), (0, 2), (1, 2)),
     ((0, 3, 2), (0, 0), (3, 2), (1, 2))],
)  # fmt: skip
def test_fewer_dimensions_are_one_row_and_empty_tensors_an_empty_picture(
    shape, picture, true, axes
):
    """The true extent is told in any case."""
    found = tensor_slice(Tensor.from_array("x", np.ones(shape, "f4")))
    assert (picture, true, axes) == (found.values.shape, found.shape, found.axes)


@pytest.mark.parametrize(
    ("shape", "axes", "index", "words"),
    [((3, 4), (0, 2), None, "axis 2 is out of range: there are 2"),
     ((3, 4), (0, -3), None, "axis -3"), ((3, 4), (1, -1), None, "both axis 1"),
     ((3, 4), (0,), None, "2 dimensions is shown by 2 axes"), ((3,), (0, 1), None, "by 1 axes"),
     ((3, 4, 5), (1, 2), {0: 3}, "axis 0: index 3 is out of range: there are 3"),
     ((3, 4, 5), (1, 2), {0: -4}, "axis 0: index -4"), ((3, 4, 5), (1, 2), {3: 0}, "axis 3"),
     ((3, 4, 5), (1, 2), {2: 0}, "axis 2 is shown"), ((0, 4, 5), (1, 2), {0: 0}, "there are 0")],
)  # fmt: skip
def test_what_a_tensor_does_not_have_is_an_error(shape, axes, index, words):
    """It is an IndexError, and says what there is."""
    with pytest.raises(SliceError, match=words) as caught:
        tensor_slice(Tensor.from_array("x", np.ones(shape, "f4")), axes, index)
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize("options", [{"max_size": 0}, {"max_size": 9999}, {"method": "max"}])
def test_impossible_options_are_errors(options):
    """They say what is possible."""
    with pytest.raises(ValueError, match=r"max_size is 1 to|method is mean or nearest"):
        tensor_slice(Tensor.from_array("x", np.ones((2, 2))), **options)


@pytest.mark.parametrize("name", ["F64", "F32", "F16", "BF16", "I64", "U64", "I8"])
def test_every_dtype_has_pictures(name):
    """Exactly where float32 holds the values; with and without ml_dtypes."""
    dtype = DType.parse(name)
    stored = np.arange(12).reshape(3, 4)
    if name == "BF16":
        stored = (stored.astype("f4").view("u4") >> 16).astype("u2")
    tensor = Tensor.from_bytes(
        "x", dtype, (3, 4), stored.astype(dtype.stored if name != "BF16" else "<u2")
    )
    np.testing.assert_array_equal(np.arange(12).reshape(3, 4), tensor_slice(tensor).values)


@pytest.mark.parametrize("dtype", [DType.BOOL, DType.BOOL_U8, DType.BOOL_U32], ids=str)
def test_booleans_show_what_is_stored(dtype):
    """0 and 1, and an odd one as what it is."""
    tensor = Tensor.from_bytes("x", dtype, (1, 3), np.array([0, 1, 7], dtype.stored))
    assert [[0, 1, 7]] == tensor_slice(tensor).values.tolist()


def test_quantized_tensors_are_dequantized_or_refused():
    """A Native store shows values; what cannot be told is an error, and so is too much at once."""
    native = DType.quantized(QuantScheme("Q8S", "Native", tensor="F32"))
    blob = np.array([1, -2, 3, 4], np.int8).tobytes() + np.float32(0.5).tobytes()
    tensor = Tensor.from_bytes("x", native, (2, 2), blob)
    assert [[0.5, -1.0], [1.5, 2.0]] == tensor_slice(tensor).values.tolist()
    packed = DType.quantized(QuantScheme("Q4S", "PackedU32", tensor="F32"))
    with pytest.raises(ValidationError, match="PackedU32"):
        tensor_slice(Tensor.from_bytes("x", packed, (2, 2), bytes(8)))
    large = Tensor.deferred("x", native, (1 << 14, 1 << 13), bytes, nbytes=(1 << 27) + 4)
    with pytest.raises(LimitError, match="pictures are made of up to"):
        tensor_slice(large)


def test_a_tensor_that_a_provider_makes_has_a_picture():
    """It is made once."""
    calls = []

    def provider():
        calls.append(1)
        return iter([noise(20, 30)[:10], noise(20, 30)[10:]])

    found = tensor_slice(Tensor.deferred("x", "F32", (20, 30), provider))
    np.testing.assert_array_equal(noise(20, 30), found.values)
    assert [1] == calls


def test_a_block_with_a_nan_is_nan_and_numbers_beyond_float32_are_infinite():
    """One NaN among thousands can be seen; nothing warns."""
    array = np.ones((64, 64))
    array[5, 6] = np.nan
    array[40, 40] = 1e300
    found = tensor_slice(Tensor.from_array("x", array), max_size=8)
    assert [(0, 0)] == list(map(tuple, np.argwhere(np.isnan(found.values)).tolist()))
    assert np.inf == found.values[5, 5]
    assert 1.0 == found.low == found.high


def test_the_range_is_that_of_the_percentiles():
    """Outliers are outside of it; a picture without finite values has none."""
    array = noise(1000, 1000)
    array[0] = 1e6
    found = tensor_slice(Tensor.from_array("x", array), max_size=1000)
    low, high = np.percentile(array, (1, 99))
    assert found.low == pytest.approx(low, rel=0.1)
    assert found.high == pytest.approx(high, rel=0.1)
    found = tensor_slice(Tensor.from_array("x", np.full((3, 3), np.nan)))
    assert (None, None) == (found.low, found.high)


class Counted(BytesSource):
    """A source that counts what is asked of it."""

    asked = 0
    largest = 0

    def read_at(self, offset, length):
        self.asked += length
        self.largest = max(self.largest, length)
        return super().read_at(offset, length)


def packed(array):
    """Return an array as the tensor of a pack over a counting source, and that source."""
    source = Counted(Writer({"x": array}).plan().into_bytes())
    pack = Reader.from_source(source)
    source.asked = source.largest = 0
    return pack["x"], source


@pytest.mark.parametrize(
    ("shape", "axes", "index", "most"),
    [((50, 100, 100), (1, 2), {0: 7}, 40_000), ((50, 100, 100), (0, 2), {1: 7}, 20_000),
     ((4000, 10, 100), (0, 2), {1: 7}, 4000 * 400), ((50, 100, 100), (0, 1), {2: 7}, 2_000_000)],
)  # fmt: skip
def test_only_the_rows_that_are_shown_are_read(shape, axes, index, most):
    """One matrix of many, or one row of each; nothing between them unless it lies within rows."""
    array = noise(*shape)
    tensor, source = packed(array)
    found = tensor_slice(tensor, axes, index, max_size=4096)
    np.testing.assert_array_equal(found.values, plane(array, axes, index))
    assert source.asked <= most


def test_nearest_reads_a_row_for_each_row_of_the_picture():
    """16 of 4096 rows."""
    tensor, source = packed(noise(4096, 256))
    tensor_slice(tensor, max_size=16, method="nearest")
    assert 16 * 256 * 4 == source.asked


def test_a_large_matrix_is_read_by_windows_and_never_held():
    """64 MiB through windows of 4 MiB; memory stays under 40 MiB, turned over too."""
    tensor, source = packed(np.broadcast_to(np.float32(2), (4096, 4096)))
    tensor_slice(tensor)
    for axes in ((0, 1), (1, 0)):
        tracemalloc.start()
        found = tensor_slice(tensor, axes)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 2.0 == found.values.min() == found.values.max()
        assert (True, True) == (source.largest <= 4 << 20, peak < 40 << 20)


def test_progress_tells_rows_and_may_cancel():
    """After each window; what it raises comes out."""
    told = []
    tensor = Tensor.from_array("w", np.zeros((4096, 1024), "f4"))
    tensor_slice(tensor, progress=lambda *step: told.append(step))
    assert ("w", 4096, 4096) == told[-1]
    assert sorted(told) == told
    assert 1 < len(told)

    class Cancelled(Exception):
        pass

    def cancel(*_):
        raise Cancelled

    with pytest.raises(Cancelled):
        tensor_slice(tensor, progress=cancel)


def test_pictures_agree_whatever_the_tensor_lies_in():
    """Memory, a pack, a provider, a strided array: the same picture."""
    array = noise(60, 70)
    tensors = [
        Tensor.from_array("x", array), packed(array)[0], Tensor.from_array("x", np.asfortranarray(array)),
        Tensor.deferred("x", "F32", (60, 70), lambda: array),
    ]  # fmt: skip
    found = [tensor_slice(tensor, max_size=9).values for tensor in tensors]
    for one, other in itertools.pairwise(found):
        np.testing.assert_array_equal(one, other)
