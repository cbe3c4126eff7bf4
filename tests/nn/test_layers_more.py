"""What the layers do beyond Burn's recorded cases: definitions, options and refusals."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn import functional as F  # noqa: N812
from bpk_lite.pack import Tensor

RANDOM = np.random.default_rng(9)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


def test_rotary_encoding_may_start_later():
    """Starting at a position is the same as being there in a longer sequence (R126)."""
    rotary = nn.RotaryEncoding(8, 4)
    x = normal(2, 6, 4)
    np.testing.assert_array_equal(rotary(x)[:, 2:], rotary(x[:, 2:], start=2))
    with pytest.raises(ValueError, match=r"up to 1 steps, 4\], the input is \[2, 6, 4\]"):
        rotary(x, start=7)


def test_average_of_a_window_behind_the_input_is_zero():
    """A window that ceil mode begins behind the input has nothing to average and gives 0."""
    layer = nn.AvgPool1d(1, stride=3, ceil_mode=True)
    for length in (2, 3):
        assert [[[1.0, 0.0]]] == layer(np.ones((1, 1, length), "f4")).tolist()


def test_enums_name_their_variant():
    """The enums give Burn's variant names, and refuse what is none (R91)."""
    norms = [nn.BatchNorm(1), nn.GroupNorm(1, 1), nn.InstanceNorm(1), nn.LayerNorm(1)]
    names = [nn.Normalization(norm).name for norm in [*norms, nn.RmsNorm(1)]]
    assert ["Batch", "Group", "Instance", "Layer", "Rms"] == names
    assert "SwiGlu" == nn.Activation(nn.SwiGlu(1, 1)).name
    with pytest.raises(ValueError, match=r"BatchNorm, GroupNorm, .* not Relu"):
        nn.Normalization(nn.Relu())


@pytest.mark.parametrize(
    "function",
    [F.sigmoid, F.log_sigmoid, F.silu, F.mish, F.softplus, F.elu, F.celu, F.selu, F.quiet_softmax],
)
def test_activations_do_not_overflow(function):
    """Large numbers of either sign give finite or infinite limits, without a warning or NaN."""
    out = function(np.array([-1e4, -90, 0, 90, 1e4], "f4"))
    assert not np.isnan(out).any()
    assert np.dtype("f4") == out.dtype


def test_nan_stays_nan():
    """No activation hides a NaN."""
    x = np.array([np.nan, 1.0], "f4")
    for name in set(F.__all__) - {"erf", "glu", "prelu", "softmax", "softmin", "log_softmax"}:
        if "softmax" not in name:
            assert np.isnan(getattr(F, name)(x)[0]), name
    assert np.isnan(F.prelu(x, 0.5)[0])


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(4, 4),
        nn.BatchNorm(4),
        nn.LayerNorm(4),
        nn.RmsNorm(4),
        nn.GroupNorm(2, 4),
        nn.Sigmoid(),
        nn.SwiGlu(4, 2),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_integers_are_taken_as_float32(layer):
    """Integer input is computed as float32."""
    x = np.array([[1, 2, 3, 4]])
    np.testing.assert_array_equal(layer(x.astype("f4")), layer(x))
    assert np.dtype("f4") == layer(x).dtype


def test_binary64_stays():
    """Binary64 input is computed in binary64 by every layer with params."""
    x = RANDOM.standard_normal((2, 4, 4))
    layers = [
        nn.LayerNorm(4), nn.RmsNorm(4), nn.GroupNorm(2, 4), nn.PRelu(4), nn.Conv1d(4, 2, 3),
        nn.ConvTranspose1d(4, 2, 3), nn.SwiGlu(4, 2), nn.Gru(4, 2), nn.TransformerEncoder(4, 4, 2, 1),
        nn.PositionalEncoding(4), nn.RotaryEncoding(8, 4), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(2),
    ]  # fmt: skip
    for layer in layers:
        assert np.dtype("f8") == layer(x).dtype, layer


def test_half_precision_weights_compute_in_float32():
    """Weights loaded as BF16 are widened wherever they are used."""
    for build, x in [
        (lambda: nn.Embedding(3, 2), np.array([0, 2])),
        (lambda: nn.LayerNorm(2), normal(1, 2)),
        (lambda: nn.ConvTranspose1d(2, 1, 2), normal(1, 2, 3)),
        (lambda: nn.Gru(2, 1), normal(1, 2, 2)),
        (lambda: nn.PRelu(2), normal(1, 2)),
    ]:
        layer = build()
        tensors = {
            name: Tensor.from_array(name, np.full(p.shape, 0x3FC0, "<u2"), dtype="BF16")
            for name, p in layer.named_params().items()
        }
        layer.load_tensors(tensors)
        assert np.dtype("f4") == layer(x).dtype


EMPTY = np.zeros((0, 4, 6), "f4")


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv1d(4, 2, 3), (0, 2, 4)),
        (nn.ConvTranspose1d(4, 2, 3), (0, 2, 8)),
        (nn.LayerNorm(6), (0, 4, 6)),
        (nn.GroupNorm(2, 4), (0, 4, 6)),
        (nn.RmsNorm(6), (0, 4, 6)),
        (nn.LocalResponseNorm(3), (0, 4, 6)),
        (nn.AvgPool1d(2), (0, 4, 3)),
        (nn.AdaptiveAvgPool1d(2), (0, 4, 2)),
        (nn.Gru(6, 2), (0, 4, 2)),
        (nn.TransformerEncoder(6, 4, 2, 1), (0, 4, 6)),
        (nn.PositionalEncoding(6), (0, 4, 6)),
        (nn.RotaryEncoding(8, 6), (0, 4, 6)),
        (nn.PRelu(4), (0, 4, 6)),
        (nn.SwiGlu(6, 3), (0, 4, 3)),
        (nn.Softmax(), (0, 4, 6)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_empty_batch_passes(layer, shape):
    """A batch of nothing gives a batch of nothing."""
    assert shape == layer(EMPTY).shape


def test_empty_images_pass():
    """The same for layers of images."""
    x = np.zeros((0, 4, 6, 6), "f4")
    assert (0, 1, 12, 12) == nn.PixelShuffle(2)(x).shape
    offset = np.zeros((0, 18, 4, 4), "f4")
    assert (0, 2, 4, 4) == nn.DeformConv2d(4, 2, 3)(x, offset).shape


@pytest.mark.parametrize(
    ("layer", "inputs", "message"),
    [
        (nn.Conv1d(2, 3, 3), [(1, 3, 8)], r"Conv1d expects \[n, 2, length\], .* \[1, 3, 8\]"),
        (nn.ConvTranspose2d(2, 3, 3), [(1, 2, 8)], r"\[n, 2, height, width\], .* \[1, 2, 8\]"),
        (nn.ConvTranspose1d(1, 1, 1, padding=2), [(1, 1, 4)], "padding 2 leaves nothing of .* 4"),
        (nn.DeformConv2d(1, 1, 2), [(1, 1, 3, 3), (1, 8, 3, 3)], r"offset must be \[1, 8, 2, 2\]"),
        (nn.DeformConv2d(1, 1, 4), [(1, 1, 3, 3), (1, 8, 3, 3)], "kernel of 4x4 does not fit"),
        (nn.LayerNorm(3), [(2, 4)], r"LayerNorm expects \[…, 3\], the input is \[2, 4\]"),
        (nn.GroupNorm(1, 3), [(2, 4)], r"\[n, 3, …\], the input is \[2, 4\]"),
        (nn.LocalResponseNorm(3), [(2,)], r"\[n, channels, …\], the input is \[2\]"),
        (nn.PRelu(3), [(2, 4)], "3 slopes do not fit"),
        (nn.Glu(), [(2, 3)], "odd: 3"),
        (nn.AdaptiveAvgPool2d(2), [(1, 1, 0, 3)], r"the input is \[1, 1, 0, 3\]"),
        (nn.AvgPool1d(3), [(1, 1, 2)], "larger than the padded input, 2 along dimension 2"),
        (nn.Embedding(3, 2), [(2,)], "expects integers, the input is float32"),
        (nn.Lstm(2, 3), [(2, 2)], r"\[batch, steps, 2\], the input is \[2, 2\]"),
        (nn.Rnn(2, 3, batch_first=False), [(2, 2, 3)], r"\[steps, batch, 2\]"),
        (nn.PositionalEncoding(4, max_sequence_size=2), [(1, 3, 4)], "up to 2 steps, 4"),
        (nn.PositionalEncoding(4), [(3, 4)], "3 dimensions, not 2"),
        (nn.PixelShuffle(2), [(1, 3, 2, 2)], r"\[n, c·4, height, width\]"),
    ],
)
def test_wrong_input_is_named(layer, inputs, message):
    """An input that does not fit is refused with what was expected and what was found."""
    with pytest.raises(ValueError, match=message):
        layer(*(np.ones(shape, "f4") for shape in inputs))


def test_wrong_ids_and_masks_are_named():
    """Ids out of range and masks of another type or shape are refused."""
    with pytest.raises(ValueError, match="expects 0 to 2, the input has -1 to 1"):
        nn.Embedding(3, 2)(np.array([1, -1]))
    mha = nn.MultiHeadAttention(2, 1)
    with pytest.raises(ValueError, match=r"mask_pad is boolean \[1, 3\], not int64 \[1, 3\]"):
        mha(normal(1, 3, 2), mask_pad=np.zeros((1, 3), "i8"))
    with pytest.raises(ValueError, match=r"mask_attn is boolean \[1, 3, 3\], not bool \[3, 3\]"):
        mha(normal(1, 3, 2), mask_attn=np.zeros((3, 3), bool))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nn.Conv3d(1, 1, (3, 3)), "kernel_size is one or three integers from 1"),
        (lambda: nn.Conv3d(1, 1, 3, padding=(1,) * 6), r"\(depth, height, width\), not"),
        (lambda: nn.ConvTranspose1d(1, 1, 2, padding=-1), "padding is one integer from 0, not -1"),
        (lambda: nn.GroupNorm(2, 3), "2 groups do not divide 3 channels"),
        (lambda: nn.LocalResponseNorm(0), "from 1, not 0"),
        (lambda: nn.MultiHeadAttention(4, 3), "3 heads do not divide 4 features"),
        (lambda: nn.CrossAttention(4, 4, 3, 2, 2), "2 key heads do not divide 3 query heads"),
        (lambda: nn.PositionalEncoding(3), "even number from 2, not 3"),
        (lambda: nn.RotaryEncoding(4, 3), "even number from 2, not 3"),
        (lambda: nn.PixelShuffle(0), "from 1, not 0"),
    ],
)
def test_wrong_option_is_named(build, message):
    """An option that makes no sense is refused when the layer is built."""
    with pytest.raises(ValueError, match=message):
        build()


def test_repr_shows_the_options():
    """Every layer shows what it was built with."""
    shown = {
        "Conv1d(2 -> 4, kernel 3, padding Same)": nn.Conv1d(2, 4, 3, padding="Same", bias=False),
        "ConvTranspose2d(2 -> 4, kernel 3x3, stride 2x2, groups 2)": nn.ConvTranspose2d(
            2, 4, 3, stride=2, groups=2
        ),
        "DeformConv2d(2 -> 4, kernel 3x3)": nn.DeformConv2d(2, 4, 3),
        "GroupNorm(2 groups of 4, epsilon=1e-05, not affine)": nn.GroupNorm(2, 4, affine=False),
        "InstanceNorm(4, epsilon=1e-05)": nn.InstanceNorm(4),
        "LocalResponseNorm(size=3, alpha=0.0001, beta=0.75, k=1.0)": nn.LocalResponseNorm(3),
        "AvgPool2d(kernel 2x2, padding not counted)": nn.AvgPool2d(2, count_include_pad=False),
        "AdaptiveAvgPool2d(2x3)": nn.AdaptiveAvgPool2d((2, 3)),
        "HardSigmoid(alpha=0.2, beta=0.5)": nn.HardSigmoid(),
        "Lstm(2 -> 3, reverse)": nn.Lstm(2, 3, reverse=True),
        "MultiHeadAttention(4, 2 heads)": nn.MultiHeadAttention(4, 2),
        "CrossAttention(2 query heads, 1 key heads of 2)": nn.CrossAttention(4, 6, 2, 1, 2),
        "RotaryEncoding(4, up to 8 steps)": nn.RotaryEncoding(8, 4),
        "PixelShuffle(2)": nn.PixelShuffle(2),
        "Embedding(5 x 2)": nn.Embedding(5, 2),
    }
    assert list(shown) == [repr(layer).split("  ")[0] for layer in shown.values()]
