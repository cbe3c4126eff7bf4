"""Convolutions, transposed and deformable ones by their definitions."""

import numpy as np
import pytest

from bpk_lite import nn

RANDOM = np.random.default_rng(9)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


@pytest.mark.parametrize(
    ("one", "other", "size"),
    [
        (nn.Conv1d, nn.ConvTranspose1d, (11,)),
        (nn.Conv2d, nn.ConvTranspose2d, (9, 8)),
        (nn.Conv3d, nn.ConvTranspose3d, (5, 6, 7)),
    ],
)
@pytest.mark.parametrize(("stride", "pad", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 2, 2)])
def test_transposed_convolution_is_the_adjoint(one, other, size, stride, pad, dilation, groups):
    """⟨conv(x), y⟩ = ⟨x, conv_transpose(y)⟩ for the same weight (R119)."""
    options = {"stride": stride, "dilation": dilation, "groups": groups, "bias": False}
    forward = one(4, 6, 3, padding=pad, **options)
    x = RANDOM.standard_normal((2, 4, *size))  # binary64: the sums below may cancel
    y = RANDOM.standard_normal(forward(x).shape)
    sizes = [(n - 1) * stride + dilation * 2 + 1 - 2 * pad for n in y.shape[2:]]
    more = tuple(n - m for n, m in zip(size, sizes, strict=True))
    back = other(6, 4, 3, padding=pad, padding_out=more, **options)
    assert forward.weight.shape == back.weight.shape
    back.weight.value = forward.weight.value
    assert x.shape == back(y).shape
    np.testing.assert_allclose((forward(x) * y).sum(), (x * back(y)).sum(), rtol=1e-8)


def test_conv1d_and_conv3d_are_conv2d_where_they_meet():
    """A convolution over dimensions of size 1 is the one of fewer dimensions (R119)."""
    flat, line, cube = nn.Conv2d(2, 3, (1, 3)), nn.Conv1d(2, 3, 3), nn.Conv3d(2, 3, (1, 1, 3))
    line.weight.value, line.bias.value = flat.weight.value[:, :, 0], flat.bias.value
    cube.weight.value, cube.bias.value = flat.weight.value[:, :, None], flat.bias.value
    x = normal(2, 2, 1, 7)
    np.testing.assert_allclose(flat(x)[:, :, 0], line(x[:, :, 0]), rtol=1e-6)
    np.testing.assert_allclose(flat(x)[:, :, None], cube(x[:, :, None]), rtol=1e-6)


def test_same_padding_of_three_dimensions():
    """Padding "Same" works for uneven sums in 3-D too, where Burn panics (R118)."""
    assert (1, 1, 3, 2, 2) == nn.Conv3d(1, 1, (2, 4, 3), padding="Same", stride=(1, 2, 2))(
        normal(1, 1, 3, 4, 4)
    ).shape


@pytest.mark.parametrize(
    ("pads", "before", "after"), [((2, 0), (2,), (0,)), ((1,), (1,), (1,)), (3, (3,), (3,))]
)
def test_explicit_padding_of_one_dimension(pads, before, after):
    """Explicit padding is (left, right) in 1-D (R118)."""
    layer, plain = nn.Conv1d(1, 1, 3, padding=pads), nn.Conv1d(1, 1, 3)
    plain.load_record(layer.into_record())
    x = normal(1, 1, 5)
    padded = np.pad(x, [(0, 0), (0, 0), (before[0], after[0])])
    np.testing.assert_allclose(plain(padded), layer(x), rtol=1e-6)


@pytest.fixture
def deformed():
    """A deformable and a plain convolution with the same params."""
    options = {"stride": 2, "padding": 1, "dilation": (1, 2)}
    bent = nn.DeformConv2d(4, 6, (3, 2), weight_groups=2, offset_groups=2, **options)
    plain = nn.Conv2d(4, 6, (3, 2), groups=2, **options)
    plain.load_record(bent.into_record())
    return bent, plain


def test_deformed_by_nothing_is_plain(deformed):
    """With offsets of 0 a deformable convolution is the plain one."""
    bent, plain = deformed
    x = normal(3, 4, 9, 10)
    out = plain(x)
    offset = np.zeros((3, 2 * 6 * 2, *out.shape[2:]), "f4")
    np.testing.assert_allclose(out, bent(x, offset), atol=1e-5)
    half = np.full((3, 2 * 6, *out.shape[2:]), 0.5, "f4")
    bias = plain.bias.value[:, None, None]
    np.testing.assert_allclose((out - bias) / 2 + bias, bent(x, offset, half), atol=1e-5)


@pytest.mark.parametrize(("down", "right"), [(1.0, 0.0), (0.0, -2.0), (0.25, 0.75)])
def test_deformed_evenly_samples_a_moved_image(deformed, down, right):
    """The same offset everywhere is the plain convolution of an image moved and interpolated."""
    bent, plain = deformed
    x = normal(1, 4, 9, 10)
    around = np.pad(x, [(0, 0), (0, 0), (4, 4), (4, 4)])

    def at(rows, columns):
        return around[:, :, 4 + rows : 13 + rows, 4 + columns : 14 + columns]

    row, column = int(np.floor(down)), int(np.floor(right))
    low, left = down - row, right - column
    moved = (1 - low) * ((1 - left) * at(row, column) + left * at(row, column + 1))
    moved = moved + low * ((1 - left) * at(row + 1, column) + left * at(row + 1, column + 1))
    out = plain(moved.astype("f4"))
    offset = np.zeros((1, 2, 6, 2, *out.shape[2:]), "f4")
    offset[:, :, :, 0], offset[:, :, :, 1] = down, right
    found = bent(x, offset.reshape(1, -1, *out.shape[2:]))
    inside = (
        ...,
        slice(1, -1),
        slice(1, -1),
    )  # the padding of a moved image is not that of the image
    np.testing.assert_allclose(out[inside], found[inside], atol=1e-5)


def test_each_cell_has_its_own_offset():
    """Offsets come cell by cell, row by row, first down and then right (torchvision's order)."""
    layer = nn.DeformConv2d(1, 1, (1, 2), bias=False)
    layer.weight.value = np.array([[[[1, 100]]]], "f4")
    x = np.arange(9, dtype="f4").reshape(1, 1, 3, 3)
    offset = np.zeros((1, 4, 3, 2), "f4")
    offset[0, 0, 0, 0], offset[0, 3, 0, 0] = 2, 1  # the first cell 2 down, the second 1 right
    assert 6 + 100 * 2 == layer(x, offset)[0, 0, 0, 0]
