"""Conversion between element types is Burn's, element by element (R29)."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bpk_lite import nn
from bpk_lite.nn._cast import bits_of, convert, convert_tensor, live
from bpk_lite.pack import DType, QuantScheme, Tensor, _dtype
from tests.nn.zoo import Fields

FLOATS = ["F64", "F32", "F16", "BF16"]
INTS = ["I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"]


@pytest.fixture(params=["as installed", "without ml_dtypes"])
def any_bf16(request, monkeypatch):
    """Run a test twice: with what is installed, and as if ml_dtypes were not."""
    if request.param == "without ml_dtypes":
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    _dtype.bfloat16.cache_clear()
    yield
    _dtype.bfloat16.cache_clear()


def cast(values, source, target):
    source, target = DType.parse(source), DType.parse(target)
    return convert(np.array(values, source.stored), source, target)


def bits(value, kind):
    return np.array([value], kind).view(f"<u{np.dtype(kind).itemsize}").tolist()


@given(st.floats(width=32, allow_nan=False))
def test_bf16_is_the_nearest(value):
    """Rounding to BF16 goes to the nearest value, ties to even, and overflows to infinity."""
    (found,) = cast([value], "F32", "BF16").tolist()
    pattern = bits(value, "<f4")[0]
    low = pattern >> 16
    rest = pattern & 0xFFFF
    up = rest > 0x8000 or (rest == 0x8000 and low & 1)
    assert low + up == found


@pytest.mark.parametrize(("value", "expected"), [(257, 0x3F80), (259, 0x3F82), (385, 0x3FC0)])
def test_bf16_ties_go_to_even(value, expected):
    """Halfway between two BF16 numbers the even one wins, downward and upward."""
    assert [expected] == cast([value / 256], "F32", "BF16").tolist()


@pytest.mark.parametrize("name", INTS)
def test_bounds_of_integers_are_exact(name):
    """The lowest integer and the float below the bound are accepted, the bound itself is not."""
    info = np.iinfo(DType.parse(name).stored)
    bound = float(info.max + 1)
    below = np.nextafter(bound, 0)
    assert [info.min, int(below)] == cast([float(info.min), below], "F64", name).tolist()
    for outside in (bound, np.nextafter(float(info.min) - 1, -np.inf)):
        with pytest.raises(ValueError, match="cannot be converted"):
            cast([outside], "F64", name)


@given(st.floats(allow_nan=False))
def test_half_precision_goes_through_binary32(value):
    """F64 to F16 and BF16 rounds twice, as Burn does: first to binary32."""
    single = cast([value], "F64", "F32")
    for half in ("F16", "BF16"):
        found = cast([value], "F64", half)
        assert convert(single, DType.F32, DType.parse(half)).tobytes() == found.tobytes()


def test_rounding_twice_shows():
    """1 + 2^-11 + 2^-40 becomes 1 in F16; rounded once it would be the next number."""
    value = 1 + 2**-11 + 2**-40
    assert np.float16(value) != cast([value], "F64", "F16")[0] == 1.0


def test_integers_go_through_binary32_to_half():
    """16777217 overflows F16 to infinity, and is rounded to 16777216 in binary32."""
    assert np.isinf(cast([16777217], "I64", "F16")[0])
    assert 16777216 == cast([16777217], "I64", "F32")[0]


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_nan_keeps_sign_and_top_bits(source, target):
    """A NaN keeps its sign and the top of its payload, and becomes quiet; unless nothing is done."""
    formats = {"F64": (64, 52), "F32": (32, 23), "F16": (16, 10), "BF16": (16, 7)}
    size, fraction = formats[source]
    signalling = (1 << size) - (1 << fraction) | 1 << (fraction - 3)  # negative, payload 001…
    array = np.array([signalling], f"<u{size // 8}").view(DType.parse(source).stored)
    array = bits_of(array, DType.parse(source))
    found = convert(array, DType.parse(source), DType.parse(target))
    size, fraction = formats[target]
    expected = (1 << size) - (1 << fraction) | 1 << (fraction - 3)
    if source != target:
        expected |= 1 << (fraction - 1)
    assert expected == found.view(f"<u{size // 8}")[0]


@given(st.data())
def test_integers_are_exact_or_refused(data):
    """An integer becomes the same integer, or the whole conversion is refused."""
    source, target = (data.draw(st.sampled_from(INTS)) for _ in range(2))
    held = data.draw(arrays(DType.parse(source).stored, st.integers(0, 4)))
    info = np.iinfo(DType.parse(target).stored)
    values = held.tolist()
    if source == target or all(info.min <= value <= info.max for value in values):
        assert values == convert(held, DType.parse(source), DType.parse(target)).tolist()
    else:
        with pytest.raises(ValueError, match="cannot be converted"):
            convert(held, DType.parse(source), DType.parse(target))


@given(st.floats(), st.sampled_from(INTS))
def test_floats_truncate_or_are_refused(value, target):
    """A float loses its fraction toward zero; NaN, infinity and what is out of range is refused."""
    info = np.iinfo(DType.parse(target).stored)
    if np.isfinite(value) and info.min <= int(value) <= info.max:
        assert [int(value)] == cast([value], "F64", target).tolist()
    else:
        with pytest.raises(ValueError, match=r"F64 cannot be converted .* element \[0\] is"):
            cast([value], "F64", target)


def test_boolean_is_what_is_not_zero():
    """NaN and the smallest numbers are true, both zeros are false."""
    assert [1, 1, 0, 0, 1] == cast([np.nan, 5e-324, 0.0, -0.0, -1], "F64", "Bool").tolist()
    assert [1, 0] == cast([2, 0], "Bool(U8)", "Bool(U32)").tolist()
    assert [0, 1] == convert(np.array([0x8000, 1], "<u2"), DType.BF16, DType.BOOL).tolist()


def test_stored_booleans_as_numbers():
    """Bool(U8) and Bool(U32) give the stored integer; Bool(Native) gives 0 and 1 and nothing else."""
    assert [2.0, 0.0] == cast([2, 0], "Bool(U8)", "F32").tolist()
    assert [1, 0] == cast([1, 0], "Bool", "I8").tolist()
    with pytest.raises(ValueError, match=r"element \[1\] is 2"):
        cast([1, 2], "Bool", "F32")


def test_same_dtype_is_untouched():
    """A conversion to the same dtype does nothing, whatever the bytes are."""
    held = np.array([0, 2, 255], "u1")
    assert held is convert(held, DType.BOOL, DType.BOOL)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (2, 3)])
@pytest.mark.parametrize("target", [*FLOATS, *INTS, "Bool"])
def test_every_shape_is_kept(shape, target):
    """No dimensions, empty ones and several are converted alike."""
    assert shape == convert(np.ones(shape, "<f4"), DType.F32, DType.parse(target)).shape


def test_refused_element_is_named_by_its_place():
    """The first element that does not fit is named with its indices."""
    held = np.array([[1, 2], [3, 300]], "<i4")
    with pytest.raises(ValueError, match=r"I32 cannot be converted to U8: element \[1, 1\] is 300"):
        convert(held, DType.I32, DType.U8)


def test_quantized_data_have_no_cast():
    """Quantized data are converted neither way."""
    quantized = DType.quantized(QuantScheme("Q8S", "Native", tensor="F32"))
    tensor = Tensor.from_bytes("w", quantized, (1,), bytes(5))
    with pytest.raises(ValueError, match="no cast"):
        convert_tensor(tensor, DType.F32)
    with pytest.raises(ValueError, match="no cast"):
        convert(np.zeros(1, "<f4"), DType.F32, quantized)


def test_big_endian_arrays_are_converted(any_bf16):
    """Byte order plays no role."""
    held = np.array([1.5, -2.0], ">f4")
    for name in ("F64", "F16", "BF16"):
        made = live(
            convert(bits_of(held, DType.F32), DType.F32, DType.parse(name)), DType.parse(name)
        )
        assert [1.5, -2.0] == nn.Param.of(held).value.tolist()
        assert DType.parse(name).numpy == made.dtype


def test_module_casts_all_float_params(any_bf16):
    """`cast` converts floats and running states in place, and leaves other kinds alone."""
    net = Fields(
        norm=nn.BatchNorm(2),
        ids=nn.Param((2,), nn.init.Zeros(), dtype=DType.I32),
        mask=nn.Param((2,), nn.init.Zeros(), dtype=DType.BOOL),
    )
    ids = [param.id for param in net.named_params().values()]
    assert net is net.cast(DType.BF16)
    assert ["BF16"] * 4 + ["I32", "Bool(Native)"] == [
        str(param.dtype) for param in net.named_params().values()
    ]
    assert ids == [param.id for param in net.named_params().values()]
    assert bytes.fromhex("803f803f") == net.into_record()["norm.gamma"].to_bytes()


def test_cast_leaves_quantized_params():
    """A quantized param has no conversion and stays as it is, beside others that are cast."""
    quantized = DType.quantized(QuantScheme("Q8S", "Native", tensor="F32"))
    layer = nn.Linear(1, 1)
    layer.weight.load(Tensor.from_bytes("w", quantized, (1, 1), bytes(5)))
    layer.cast("F16")
    assert (quantized, DType.F16) == (layer.weight.dtype, layer.bias.dtype)
    with pytest.raises(ValueError, match="cannot be cast to F16"):
        layer.weight.cast(DType.F16)


@pytest.mark.parametrize("dtype", ["I32", "Bool", DType.U8])
def test_module_casts_to_floats_only(dtype):
    """Float params have no integer form: only float dtypes are accepted."""
    with pytest.raises(ValueError, match="to a float dtype, not to"):
        nn.Linear(1, 1).cast(dtype)


@pytest.mark.parametrize("target", ["F16", "BF16", "F64"])
def test_cast_does_not_depend_on_use(target, any_bf16):
    """Casting before the first use, after it, or after loading gives the same bytes."""

    def build():
        nn.manual_seed(5)
        return nn.Linear(3, 2)

    fresh, used, loaded = build(), build(), build()
    assert 6 == used.weight.value.size
    loaded.load_record(build().into_record())
    for module in (fresh, used, loaded):
        module.cast(target)
    assert not fresh.weight.materialised
    expected = fresh.into_record()["weight"].to_bytes()
    assert expected == used.into_record()["weight"].to_bytes()
    assert expected == loaded.into_record()["weight"].to_bytes()


def test_half_casts_forget_what_they_rounded(any_bf16):
    """Casting an unused param to BF16 and back keeps the rounded value, as it would a used one."""
    param = Fields(w=nn.Param((1,), nn.init.Constant(1.001))).cast("BF16").cast("F32").w
    assert ("F32", 1.0) == (str(param.dtype), param.value.item())


def test_cast_reads_nothing():
    """Casting a loaded param waits until its value is used."""
    param = nn.Param((1,), nn.init.Zeros())

    def explode():
        raise AssertionError("the tensor's bytes were read")

    param.load(Tensor.deferred("w", DType.F64, (1,), explode))
    param.cast(DType.F16)
    assert DType.F16 == param.dtype


def test_bf16_params_draw_compute_and_save(any_bf16):
    """A BF16 layer draws, computes in float32 and saves, with and without ml_dtypes."""
    layer = nn.Linear(2, 1, initializer=nn.init.Constant(1.5)).cast("BF16")
    out = layer(np.ones((1, 2), "f4"))
    assert (np.dtype("f4"), 4.5) == (out.dtype, out.item())
    assert bytes.fromhex("c03fc03f") == layer.into_record()["weight"].to_bytes()


def test_bf16_params_are_mapped_as_float32(any_bf16):
    """A mapper gets float32 for BF16, and its float32 goes back to BF16, rounded."""
    net = Fields(w=nn.Param((1,), nn.init.Constant(1.5), dtype=DType.BF16))
    net.map(lambda _path, value: value + np.float32(0.001))
    assert (DType.BF16, 1.5) == (net.w.dtype, net.w.operand().item())
    net.map(lambda _path, value: value.astype("f8") + 0.001)
    assert (DType.F64, 1.501) == (net.w.dtype, net.w.value.item())


def test_bf16_params_take_bits(any_bf16):
    """Assigned ``uint16`` values are the bits of a BF16 param, and integers for every other."""
    param = nn.Param((1,), nn.init.Zeros(), dtype=DType.BF16)
    param.value = np.array([0x3FC0], "<u2")
    assert (DType.BF16, 1.5) == (param.dtype, param.operand().item())
    with pytest.raises(ValueError, match="cannot hold U16"):
        nn.Param((1,), nn.init.Zeros()).value = np.array([0x3FC0], "<u2")


@pytest.mark.desktop
@given(arrays("<f4", 8, elements=st.floats(width=32)))
def test_bf16_agrees_with_ml_dtypes(values):
    """ml_dtypes rounds to the same BF16, NaN aside."""
    import ml_dtypes

    with np.errstate(all="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).view("<u2")
    found = convert(values, DType.F32, DType.BF16)
    numbers = ~np.isnan(values)
    assert expected[numbers].tolist() == found[numbers].tolist()
