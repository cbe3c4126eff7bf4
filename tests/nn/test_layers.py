"""What layers do beyond Burn's recorded cases: sizes, memory, dtypes and refusals."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn import _conv

RANDOM = np.random.default_rng(5)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


def direct_conv(x, layer):
    """Convolve by the definition (R119), padding by zeros for one number on all sides."""
    weight, pad = layer.weight.value, layer.padding
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    out_channels, part, high, wide = weight.shape
    (down, across), (gap_down, gap_across) = layer.stride, layer.dilation
    rows = (x.shape[2] - gap_down * (high - 1) - 1) // down + 1
    columns = (x.shape[3] - gap_across * (wide - 1) - 1) // across + 1
    out = np.zeros((len(x), out_channels, rows, columns))
    for o in range(out_channels):
        first = o // (out_channels // layer.groups) * part
        for i in range(rows):
            for j in range(columns):
                cells = x[
                    :,
                    first : first + part,
                    i * down : i * down + gap_down * (high - 1) + 1 : gap_down,
                    j * across : j * across + gap_across * (wide - 1) + 1 : gap_across,
                ]
                out[:, o, i, j] = (cells.astype("f8") * weight[o]).sum(axis=(1, 2, 3))
    return out + layer.bias.value[:, None, None]


@pytest.mark.parametrize("window", [_conv.WINDOW, 1, 3000])
@pytest.mark.parametrize(
    "options",
    [
        {"padding": 0},
        {"padding": 2, "stride": (2, 1)},
        {"padding": 1, "dilation": (1, 2), "groups": 2},
        {"padding": 0, "stride": 3, "groups": 4},
    ],
)
def test_conv_is_its_definition(options, window, monkeypatch):
    """A convolution equals the sum of R119, in whatever pieces the windows are unfolded."""
    monkeypatch.setattr(_conv, "WINDOW", window)
    layer = nn.Conv2d(4, 8, (3, 2), **options)
    x = normal(3, 4, 9, 8)
    np.testing.assert_allclose(layer(x), direct_conv(x, layer), atol=2e-6)


def test_conv_unfolds_at_most_a_window(monkeypatch):
    """No piece of unfolded input exceeds the window, over images and over rows of one image."""
    monkeypatch.setattr(_conv, "WINDOW", 4096)
    seen = []
    product = _conv._product

    def spy(windows, matrix):
        seen.append(windows.nbytes)
        return product(windows, matrix)

    monkeypatch.setattr(_conv, "_product", spy)
    layer = nn.Conv2d(2, 2, 3)
    layer(normal(20, 2, 5, 5))
    layer(normal(1, 2, 30, 30))
    assert 4096 >= max(seen)
    assert 2048 < max(seen)
    assert len(seen) > 10


def test_conv_output_is_channels_last_in_memory():
    """A convolution's output is a view of a channels-last array, which the next one wants."""
    out = nn.Conv2d(1, 3, 3)(normal(2, 1, 5, 5))
    assert (2, 3, 3, 3) == out.shape
    assert out.transpose(0, 2, 3, 1).flags.c_contiguous


def test_empty_batch_gives_an_empty_batch():
    """A batch of no images passes through every layer."""
    x = np.zeros((0, 2, 6, 6), "f4")
    for layer in (nn.Conv2d(2, 3, 3), nn.BatchNorm(2), nn.MaxPool2d(2), nn.Gelu(), nn.Relu()):
        assert 0 == len(layer(x))
    assert (0, 3) == nn.Linear(2, 3)(np.zeros((0, 2), "f4")).shape


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.Linear(4, 3), (2, 5), r"\[…, 4\], the input is \[2, 5\]"),
        (nn.Linear(4, 3), (), r"\[…, 4\], the input is \[\]"),
        (nn.Conv2d(2, 3, 3), (1, 3, 8, 8), r"\[n, 2, height, width\], the input is \[1, 3, 8, 8\]"),
        (nn.Conv2d(2, 3, 3), (2, 8, 8), r"the input is \[2, 8, 8\]"),
        (nn.Conv2d(2, 3, (9, 1)), (1, 2, 8, 8), "spans 9x1, the padded input only 8x8"),
        (nn.Conv2d(2, 3, 3, dilation=(1, 4)), (1, 2, 8, 8), "spans 3x9, the padded input only 8x8"),
        (nn.BatchNorm(3), (2, 4), r"\[n, 3, …\], the input is \[2, 4\]"),
        (nn.BatchNorm(3), (3,), r"the input is \[3\]"),
        (nn.MaxPool2d(3), (1, 1, 2, 3), "larger than the padded input, 2 along dimension 2"),
        (nn.MaxPool2d(3), (3, 3), r"the input is \[3, 3\]"),
    ],
)
def test_wrong_input_is_named(layer, shape, message):
    """An input of a wrong shape is refused with what was expected and what was found."""
    with pytest.raises(ValueError, match=message):
        layer(np.zeros(shape, "f4"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "groups divides both channel counts, 3 and 4: 2"),
        (lambda: nn.Conv2d(1, 1, (3, 3, 3)), "kernel_size is one or two integers from 1"),
        (lambda: nn.Conv2d(1, 1, 3, stride=0), "stride is one or two integers from 1, not 0"),
        (lambda: nn.Conv2d(1, 1, 3, padding="same"), '"Valid", "Same", .* not \'same\''),
        (
            lambda: nn.MaxPool2d(2, padding=(1, 1, 1)),
            r"\(top, left, bottom, right\), not \(1, 1, 1",
        ),
        (lambda: nn.MaxPool2d(2, padding=-1), "not -1"),
        (lambda: nn.Linear(1, 1, layout="row"), '"Row" or "Col", not \'row\''),
        (lambda: nn.Dropout(1.5), "between 0 and 1, not at 1.5"),
    ],
)
def test_wrong_option_is_named(build, message):
    """An option that makes no sense is refused when the layer is built."""
    with pytest.raises(ValueError, match=message):
        build()


def test_pool_padding_never_wins():
    """Padding is below every number, so a padded pool of negatives stays negative (R122)."""
    x = np.full((1, 1, 2, 2), -5, "f4")
    assert (
        np.full((1, 1, 3, 3), -5, "f4").tolist() == nn.MaxPool2d(2, stride=1, padding=1)(x).tolist()
    )


def test_pool_keeps_the_input():
    """A pool of single cells gives a new array, not the input itself."""
    x = normal(1, 1, 2, 2)
    assert not np.shares_memory(x, nn.MaxPool2d(1)(x))


def test_batch_norm_keeps_the_input():
    """A batch norm computes in an array of its own."""
    x = normal(2, 3)
    before = x.copy()
    nn.BatchNorm(3)(x)
    assert before.tolist() == x.tolist()


def test_dropout_is_the_identity():
    """Dropout returns its input: layers compute for inference."""
    x = normal(3, 3)
    assert x is nn.Dropout(0.5)(x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dtype_is_the_inputs(dtype):
    """Layers compute in the dtype of their input, and not below that of their params."""
    x = np.ones((1, 1, 4, 4), dtype)
    for layer in (nn.Conv2d(1, 1, 3), nn.BatchNorm(1), nn.MaxPool2d(2), nn.Gelu(), nn.Linear(4, 2)):
        assert np.dtype(dtype) == layer(x).dtype


def test_half_precision_params_compute():
    """A layer whose params were loaded as BF16 computes in float32."""
    bits = np.array([[0x3F80], [0x4000]], "<u2")  # 1 and 2
    layer = nn.Linear(2, 1, bias=False)
    from bpk_lite.pack import Tensor

    layer.load_tensors({"weight": Tensor.from_array("weight", bits, dtype="BF16")})
    out = layer(np.array([[3, 4]], "f4"))
    assert (np.dtype("f4"), 11.0) == (out.dtype, out.item())
