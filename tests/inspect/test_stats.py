"""Statistics in one pass: exact where they say so, and near numpy's float64 everywhere else."""

from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpk_lite.inspect import Statistics, tensor_stats
from bpk_lite.inspect._distribution import Distribution
from bpk_lite.inspect._numbers import Numbers
from bpk_lite.pack import DType, QuantScheme, Tensor

PLAIN = [
    "F64",
    "F32",
    "Flex32",
    "F16",
    "BF16",
    "I64",
    "I32",
    "I16",
    "I8",
    "U64",
    "U32",
    "U16",
    "U8",
]


def rng():
    """Return the same numbers in every test, whichever ran before."""
    return np.random.default_rng(7)


def values_of(name, count):
    """Return some values of a dtype: (elements as stored, the same as float64)."""
    dtype = DType.parse(name)
    if dtype.kind == "int":
        info = np.iinfo(dtype.stored)
        made = rng().integers(max(info.min, -900), min(info.max, 900), count, endpoint=True)
        made = made.astype(dtype.stored)
        return made, made.astype("f8")
    made = rng().standard_normal(count).astype("f4")
    if name == "BF16":
        bits = (made.view("u4") >> 16).astype("u2")
        return bits, (bits.astype("u4") << 16).view("f4").astype("f8")
    made = made.astype(dtype.stored)
    return made, made.astype("f8")


def stats(stored, dtype=None, **options):
    """Return the statistics of an array as stored."""
    kind = DType.of(stored) if dtype is None else DType.parse(dtype)
    return tensor_stats(Tensor.from_bytes("x", kind, stored.shape, stored), **options)


@pytest.mark.parametrize("count", [1, 1000, 300_000])
@pytest.mark.parametrize("name", PLAIN)
def test_moments_extremes_and_quantiles_are_numpys(name, count):
    """For every plain dtype, for few elements and for more than the sample holds."""
    stored, values = values_of(name, count)
    found = stats(stored, name)
    assert (count, count, 0, 0, 0) == (
        found.count, found.finite, found.nans, found.infs_positive, found.infs_negative,
    )  # fmt: skip
    assert int((values == 0).sum()) == found.zeros
    assert (values.min(), values.max()) == (found.min, found.max)
    assert found.mean == pytest.approx(values.mean(), rel=1e-11, abs=1e-14)
    assert found.std == pytest.approx(values.std(), rel=1e-11, abs=1e-14)
    for probability, quantile in found.quantiles.items():
        right = np.quantile(values, probability, method="inverted_cdf")
        exact = count <= 1000 or DType.parse(name).itemsize <= 2
        tolerance = 0 if exact else 0.008
        assert quantile == pytest.approx(right, rel=tolerance, abs=0), probability


@pytest.mark.parametrize("name", PLAIN)
def test_the_histogram_of_few_elements_is_numpys(name):
    """Counted by numpy between the same edges; what lies outside is counted too."""
    stored, values = values_of(name, 5000)
    found = stats(stored, name, bins=16).histogram
    assert np.histogram(values, found.edges)[0].tolist() == list(found.counts)
    assert int((values < found.edges[0]).sum()) == found.below
    assert int((values > found.edges[-1]).sum()) == found.above


@pytest.mark.parametrize("name", ["F64", "F32", "I32", "U64"])
def test_the_histogram_of_many_elements_is_near_and_its_sum_exact(name):
    """Every bin within 5 % of the largest; no element is lost or counted twice."""
    stored, values = values_of(name, 400_000)
    found = stats(stored, name).histogram
    right = np.histogram(values, found.edges)[0]
    assert values.size == sum(found.counts) + found.below + found.above
    np.testing.assert_allclose(found.counts, right, atol=0.05 * right.max())


def test_outliers_do_not_flatten_the_histogram():
    """Ten values of 1e30 among a million: the bell still fills the bins, they are counted above it."""
    values = rng().standard_normal(1_000_000).astype("f4")
    values[::100_000] = 1e30
    found = stats(values)
    assert 10 <= found.histogram.above < 30
    assert -8 < found.histogram.edges[0] < -4
    assert 4 < found.histogram.edges[-1] < 8
    assert np.count_nonzero(found.histogram.counts) > 50


def test_values_far_from_zero_and_near_each_other_are_told_apart():
    """The weights of a norm, 1 ± 0.001, many more than the sample holds: a bell, not two bars."""
    values = (1 + 0.001 * rng().standard_normal(400_000)).astype("f4")
    found = stats(values)
    assert 0.99 < found.histogram.edges[0] < found.histogram.edges[-1] < 1.01
    right = np.histogram(values, found.histogram.edges)[0]
    np.testing.assert_allclose(found.histogram.counts, right, atol=0.06 * right.max())
    quantiles = np.quantile(values, list(found.quantiles), method="inverted_cdf")
    np.testing.assert_allclose(list(found.quantiles.values()), quantiles, atol=0.001 * 0.05)


@pytest.mark.parametrize("scale", [1e300, 1e200, 1e39, 1e-42, 1e-300])
def test_float64_beyond_float32_keeps_its_shape(scale):
    """A bell of numbers that float32 cannot hold, large or small, more than the sample has."""
    values = rng().standard_normal(200_000) * scale
    found = stats(values)
    right = np.histogram(values, found.histogram.edges)[0]
    assert np.count_nonzero(right) > 50
    np.testing.assert_allclose(found.histogram.counts, right, atol=0.05 * right.max())
    assert found.quantiles[0.05] == pytest.approx(np.quantile(values, 0.05), rel=0.05)


@pytest.mark.parametrize("total", [98_304, 98_305, 500_000])
def test_the_sample_is_evenly_taken(total):
    """All elements up to 98 304; above that every third, ninth, …, across blocks of any length."""
    tally = Numbers(np.dtype("<f4"))
    values = np.arange(total, dtype="f4")
    for start in range(0, total, 1001):
        tally.add(values[start : start + 1001])
    kept = np.concatenate(tally._sample)
    step = 1 if total == 98_304 else 3 if total == 98_305 else 9
    assert values[::step].tolist() == kept.tolist()


def test_nearly_all_zeros_show_the_others():
    """A sparse tensor: 99.9 % zeros, and the histogram reaches where the others are."""
    values = np.zeros(200_000, "f4")
    values[::1000] = rng().uniform(1, 2, 200)
    found = stats(values)
    assert (199_800, 1.99) < (found.zeros, found.max)
    assert found.histogram.edges[0] <= 0 < 1.9 < found.histogram.edges[-1]
    assert 199_800 == max(found.histogram.counts)


def test_bins_of_whole_numbers_are_whole():
    """Twelve values: twelve bins around them; 100 000: bins of one whole width."""
    found = stats(np.repeat(np.arange(-5, 7, dtype="i4"), 3)).histogram
    assert ([-5.5, -4.5], 6.5, (3,) * 12) == (list(found.edges[:2]), found.edges[-1], found.counts)
    assert (1,) * 64 == stats(np.arange(64, dtype="i4")).histogram.counts
    assert (*(2,) * 32, 1) == stats(np.arange(65, dtype="i4")).histogram.counts
    found = stats(np.arange(100_000, dtype="i8")).histogram
    assert {1563.0} == set(np.diff(found.edges))


@pytest.mark.parametrize("name", ["I64", "U64"])
def test_the_extremes_of_64_bits_are_exact(name):
    """As integers: float64 would round them. Small differences around a huge offset count too."""
    info = np.iinfo(DType.parse(name).stored)
    values = np.array([info.min, info.max, 0], DType.parse(name).stored)
    found = stats(values)
    assert (info.min, info.max) == (found.min, found.max)
    assert type(found.min) is type(found.max) is int
    near = np.array(info.max, values.dtype) - np.arange(100_000, dtype=values.dtype)
    found = stats(near)
    assert found.std == pytest.approx(np.arange(100_000).std(), rel=1e-12)
    assert (info.max, info.max - 99_999) == (found.max, found.min)
    assert near.size == sum(found.histogram.counts) + found.histogram.below + found.histogram.above


def test_a_huge_offset_costs_no_digits():
    """float64 around 1e15, with a deviation of 1; the naive formula would give nonsense."""
    noise = rng().standard_normal(200_000)
    values = 1e15 + noise
    found = stats(values)
    exact = (values - 1e15).std()
    assert found.std == pytest.approx(exact, rel=1e-12)
    assert found.mean == pytest.approx(1e15, rel=1e-15)


def test_an_outlier_in_front_costs_no_digits():
    """The first element is what others are measured from; a huge one does no harm."""
    values = rng().standard_normal(200_000)
    values[0] = 1e9
    found = stats(values)
    assert found.mean == pytest.approx(values.mean(), rel=1e-9)
    assert found.std == pytest.approx(values.std(), rel=1e-12)


@pytest.mark.parametrize("small", [0, 70_000])
@pytest.mark.parametrize("size", [1e300, 1.7e308])
def test_squares_that_float64_cannot_hold(size, small):
    """The deviation of ±1.7e308 is 1.7e308, after a block of small numbers too."""
    values = np.concatenate([np.ones(small), np.tile([size, -size / 2], 100_000)])
    found = stats(values)
    with np.errstate(over="ignore"):
        exact = (values / size).std() * size
    assert found.std == pytest.approx(exact, rel=1e-9)
    assert found.mean == pytest.approx((values / size).mean() * size, rel=1e-9)


@pytest.mark.parametrize("name", ["F64", "F32", "F16", "BF16", "I32", "U8"])
def test_a_constant_has_no_deviation(name):
    """Exactly 0, and one bin holds all."""
    dtype = DType.parse(name)
    stored = (
        np.full(70_001, 0x3E99, "u2")
        if name == "BF16"
        else np.full(70_001, 0.1 if dtype.kind == "float" else 3).astype(dtype.stored)
    )
    found = stats(stored, name)
    assert 0.0 == found.std
    assert found.min == found.max == found.mean
    assert (70_001, 1) == (max(found.histogram.counts), np.count_nonzero(found.histogram.counts))


@pytest.mark.parametrize("name", ["F64", "F32", "F16", "BF16"])
def test_nan_and_infinity_are_counted_and_left_out_of_the_rest(name):
    """Extremes know infinities and no NaN; moments know neither. Signalling NaNs warn nobody."""
    plain = np.array([1, 2, 3, np.nan, np.inf, np.inf, -np.inf, -0.0], "f4")
    plain = np.concatenate([plain, np.array([0x7F800001, 0xFF800001], "u4").view("f4")])
    if name == "BF16":
        stored = (plain.view("u4") >> 16).astype("u2")
        stored[-2:] = [0x7F81, 0xFF81]
    else:
        with np.errstate(invalid="ignore"):
            stored = plain.astype(DType.parse(name).stored)
    found = stats(stored, name)
    assert (10, 4, 3, 2, 1, 1) == (
        found.count, found.finite, found.nans, found.infs_positive, found.infs_negative, found.zeros,
    )  # fmt: skip
    assert (-math.inf, math.inf, 1.5) == (found.min, found.max, found.mean)
    assert 4 == sum(found.histogram.counts) + found.histogram.below + found.histogram.above
    json.dumps(found.to_dict(), allow_nan=False)
    assert ("-inf", "inf") == (found.to_dict()["min"], found.to_dict()["max"])


@pytest.mark.parametrize(
    ("values", "least", "most"),
    [([], None, None), ([np.nan] * 3, None, None), ([np.inf, np.nan], np.inf, np.inf),
     ([-np.inf], -np.inf, -np.inf), ([-np.inf, np.inf], -np.inf, np.inf)],
)  # fmt: skip
@pytest.mark.parametrize("name", ["F64", "F32", "F16"])
def test_without_finite_elements_there_are_no_moments(name, values, least, most):
    """Empty tensors, NaN alone, infinities alone."""
    found = stats(np.array(values, DType.parse(name).stored))
    assert (len(values), 0, least, most) == (found.count, found.finite, found.min, found.max)
    assert (None, None, None, {}) == (found.mean, found.std, found.histogram, dict(found.quantiles))
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_tensor_without_dimensions_is_one_element():
    """And an empty one of several dimensions none."""
    assert (1, 2.5) == (stats(np.array(2.5)).count, stats(np.array(2.5)).mean)
    assert 0 == stats(np.zeros((3, 0, 2), "f4")).count


def test_different_whole_numbers_are_counted_up_to_a_bound():
    """Exactly up to 65 536, and above that it says that they are more."""
    found = stats(np.tile(np.array([-(1 << 60), 3, 1 << 60, 4]), 50_000))
    assert (4, True) == (found.distinct, found.distinct_is_exact)
    found = stats(np.arange(65_536, dtype="u4")[::-1].copy())
    assert (65_536, True) == (found.distinct, found.distinct_is_exact)
    found = stats(np.arange(65_537, dtype="i8"))
    assert (65_537, False) == (found.distinct, found.distinct_is_exact)
    found = stats(np.arange(300_000, dtype="i8"))
    assert (True, False) == (65_536 < found.distinct <= 300_000, found.distinct_is_exact)
    found = stats(np.arange(1000, dtype="i2"))
    assert (1000, True) == (found.distinct, found.distinct_is_exact)
    assert None is stats(np.ones(3, "f4")).distinct


@pytest.mark.parametrize("dtype", [DType.BOOL, DType.BOOL_U8, DType.BOOL_U32], ids=str)
def test_booleans_are_zeros_and_ones(dtype):
    """In each store; others are counted as what they are, and a note says so."""
    stored = np.array([0, 1, 1, 1], dtype.stored)
    found = tensor_stats(Tensor.from_bytes("x", dtype, (4,), stored))
    assert (1, 0, 1, 0.75, 2, "") == (
        found.zeros, found.min, found.max, found.mean, found.distinct, found.note,
    )  # fmt: skip
    stored[0] = 9
    found = tensor_stats(Tensor.from_bytes("x", dtype, (4,), stored))
    assert (9, True) == (found.max, "neither 0 nor 1" in found.note)


def test_quantized_tensors_have_the_statistics_of_their_codes_or_say_why_not():
    """Native stores do, scales left out; packed, truncated and shapeless ones have a note."""
    codes = np.array([-3, 0, 5, 5], np.int8)
    native = QuantScheme("Q8S", "Native", tensor="F32")
    blob = codes.tobytes() + np.float32(9).tobytes()
    found = tensor_stats(Tensor.from_bytes("x", DType.quantized(native), (4,), blob))
    assert (4, -3, 5, 1.75, 3) == (found.count, found.min, found.max, found.mean, found.distinct)
    assert "Q8S codes" in found.note
    small = QuantScheme("E4M3", "Native", tensor="F32")
    found = tensor_stats(
        Tensor.from_bytes("x", DType.quantized(small), (4,), b"\x38\xb8\x00\x7f" + bytes(4))
    )
    assert (1.0, -1.0, 1, 1) == (found.max, found.min, found.nans, found.zeros)
    packed = QuantScheme("Q4S", "PackedU32", tensor="F32")
    for scheme, data, reason in ((packed, bytes(8), "PackedU32"), (native, blob[:-1], "7 bytes")):
        found = tensor_stats(Tensor.from_bytes("x", DType.quantized(scheme), (4,), data))
        assert (0, None, True) == (found.count, found.min, reason in found.note)
    shapeless = Statistics(DType.quantized(native))
    shapeless.update(blob)
    assert "shape" in shapeless.result().note


@given(st.data())
def test_pieces_may_end_anywhere(data):
    """Cut anywhere, inside elements too, the bytes give the same statistics (facts of the stream)."""
    name = data.draw(st.sampled_from(PLAIN))
    stored, _ = values_of(name, 300)
    blob = stored.tobytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(blob)), max_size=9)))
    whole, parts = Statistics(DType.parse(name)), Statistics(DType.parse(name))
    whole.update(blob)
    for start, stop in zip([0, *cuts], [*cuts, len(blob)], strict=True):
        parts.update(blob[start:stop])
    one, other = whole.result(), parts.result()
    assert one.to_dict() | {"mean": 0, "std": 0} == other.to_dict() | {"mean": 0, "std": 0}
    assert one.mean == pytest.approx(other.mean, rel=1e-12)
    assert one.std == pytest.approx(other.std, rel=1e-12)


def test_a_piece_is_not_kept():
    """Its memory may be used again, or go away, when `update` returns."""
    piece = bytearray(np.arange(100_000, dtype="f4").tobytes()[:-1])
    statistics = Statistics(DType.F32)
    statistics.update(piece)
    before = statistics.result()
    piece[:] = bytes(len(piece))
    piece.clear()  # a view that was kept would make this a BufferError
    assert before == statistics.result()
    assert 99_999 == before.count


@pytest.mark.parametrize("make", [memoryview, np.array, lambda x: memoryview(x).cast("B")])
def test_any_buffer_is_a_piece(make):
    """Arrays and views of other element types too."""
    statistics = Statistics(DType.F32)
    statistics.update(make(np.arange(6, dtype="f4").reshape(2, 3)))
    assert (6, 5.0) == (statistics.result().count, statistics.result().max)
    for half in np.array([7.5], "f4").view("u2"):  # elements may end between pieces of any type
        statistics.update(make(np.array([half, half])[:1]))
    assert (7, 7.5) == (statistics.result().count, statistics.result().max)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_of_few_elements_are_order_statistics(values, probability):
    """The least element that this part of them does not exceed, as numpy's inverted_cdf."""
    found = Distribution.of(np.array(values)).quantile(probability)
    assert np.quantile(np.array(values), probability, method="inverted_cdf") == found


def test_progress_tells_bytes_and_may_cancel():
    """It is called after each piece; what it raises comes out, and the tensor is as it was."""
    pieces = [np.full(1000, i, "f4") for i in range(4)]
    tensor = Tensor.deferred("w", "F32", (4000,), lambda: iter(pieces))
    told = []
    tensor_stats(tensor, progress=lambda *step: told.append(step))
    assert [("w", done, 16_000) for done in (4000, 8000, 12_000, 16_000)] == told

    class Cancelled(Exception):
        pass

    def cancel(name, done, total):
        told.append(done)
        raise Cancelled

    told.clear()
    with pytest.raises(Cancelled):
        tensor_stats(tensor, progress=cancel)
    assert [4000] == told
    assert 1.5 == tensor_stats(tensor).mean


@pytest.mark.parametrize("name", ["F32", "BF16", "I64"])
def test_memory_stays_small_whatever_the_tensor_has(name):
    """Under 8 MiB beside the one piece, for 32 MiB as for any more."""
    stored, _ = values_of(name, (2 << 20) // DType.parse(name).itemsize)
    tensor = Tensor.deferred("x", name, (16 * stored.size,), lambda: (stored for _ in range(16)))
    tensor_stats(tensor)  # tables that are made once
    tracemalloc.start()
    tensor_stats(tensor)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("bins", [0, -1, 5000])
def test_an_impossible_number_of_bins_is_an_error(bins):
    """It says what is possible."""
    with pytest.raises(ValueError, match="1 to 4096"):
        Statistics(DType.F32, bins=bins)


def test_one_bin_is_possible():
    """It holds all."""
    assert (3,) == stats(np.arange(3, dtype="f4"), bins=1).histogram.counts
