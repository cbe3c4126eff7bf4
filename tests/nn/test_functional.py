"""Activations and initial values."""

import math

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn import functional, init


def test_gelu_is_exact_in_double():
    """The exact gelu is ``x/2 (1 + erf(x/√2))`` to the last bits, also over many pieces (R121)."""
    x = np.linspace(-6, 6, 70_001)
    some = slice(None, None, 1000)
    expected = [v / 2 * (1 + math.erf(v * math.sqrt(0.5))) for v in x[some].tolist()]
    np.testing.assert_allclose(nn.gelu(x)[some], expected, rtol=1e-15)


def test_erf_keeps_shape():
    """`erf` takes arrays of any shape and stride."""
    x = np.linspace(-2, 2, 24).reshape(2, 3, 4).T
    expected = [math.erf(v) for v in x.ravel().tolist()]
    assert expected == functional.erf(x).ravel().tolist()
    assert 0 == functional.erf(np.zeros((0, 3))).size


def test_gelu_approximation_is_near():
    """The approximation by tanh stays within 5e-4 of the exact gelu, and is not it (R121)."""
    x = np.linspace(-5, 5, 101).astype("f4")
    gap = np.abs(nn.gelu(x) - nn.gelu(x, approximate=True)).max()
    assert 5e-4 > gap > 1e-5


def test_softmax_does_not_overflow():
    """Softmax and its logarithm take numbers whose exponentials have no float."""
    x = np.array([[1000, 999, -1000]], "f4")
    e = math.exp(-1)
    np.testing.assert_allclose(nn.softmax(x), [[1 / (1 + e), e / (1 + e), 0]], rtol=1e-6)
    expected = [[-math.log1p(e), -1 - math.log1p(e), -2000 - math.log1p(e)]]
    np.testing.assert_allclose(nn.log_softmax(x), expected, rtol=1e-6)


def test_softmax_goes_along_its_dimension():
    """Softmax sums to 1 along `dim`, the last one by default."""
    x = np.arange(12, dtype="f4").reshape(3, 4)
    np.testing.assert_allclose(nn.softmax(x).sum(axis=1), np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(nn.softmax(x, 0).sum(axis=0), np.ones(4), rtol=1e-6)


def test_relu_keeps_nan():
    """Relu cuts at 0 and leaves NaN."""
    out = nn.relu(np.array([-1, 2, np.nan], "f4"))
    assert [0.0, 2.0] == out[:2].tolist()
    assert np.isnan(out[2])


def test_integers_become_float32():
    """Activations take integers as float32."""
    assert np.dtype("f4") == nn.gelu([1, 2]).dtype


def drawn(initializer, fan_in=12, fan_out=36):
    return initializer.fill((200, 300), fan_in, fan_out, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("initializer", "std"),
    [
        (init.Uniform(-1, 1), 1 / math.sqrt(3)),
        (init.Normal(0, 0.3), 0.3),
        (init.KaimingUniform(gain=2), 2 / math.sqrt(12)),
        (init.KaimingUniform(fan_out_only=True), 1 / 6),
        (init.KaimingNormal(), 1 / math.sqrt(12)),
        (init.KaimingNormal(fan_out_only=True), 1 / 6),
        (init.XavierUniform(), math.sqrt(2 / 48)),
        (init.XavierNormal(gain=3), 3 * math.sqrt(2 / 48)),
    ],
    ids=repr,
)
def test_spread_is_burns(initializer, std):
    """A random initializer has mean 0 and Burn's standard deviation."""
    values = drawn(initializer)
    assert std == pytest.approx(values.std(), rel=0.02)
    assert 0 == pytest.approx(values.mean(), abs=0.02 * std)


@pytest.mark.parametrize(
    "initializer", [init.Uniform(-1, 1), init.KaimingUniform(), init.XavierUniform()], ids=repr
)
def test_uniform_has_edges(initializer):
    """A uniform initializer reaches √3 standard deviations and not beyond."""
    values = drawn(initializer)
    assert math.sqrt(3) == pytest.approx(np.abs(values).max() / values.std(), rel=0.02)


def test_constants_fill():
    """Zeros, Ones and Constant fill with their value."""
    for value, initializer in [(0, init.Zeros()), (1, init.Ones()), (7, init.Constant(7))]:
        assert {value} == set(drawn(initializer).ravel().tolist())


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [(nn.Linear(9, 500), 9), (nn.Conv2d(4, 500, 3, groups=2), 18)],
    ids=["l", "c"],
)
def test_layers_start_within_the_inverse_root_of_the_fan(layer, fan_in):
    """Weight and bias of linear and conv layers start evenly within ±1/√fan_in, as in Burn."""
    for param in (layer.weight, layer.bias):
        assert 1 / math.sqrt(fan_in) == pytest.approx(np.abs(param.value).max(), rel=0.02)
        assert np.abs(param.value).max() <= 1 / math.sqrt(fan_in)


def test_batch_norm_starts_as_the_identity():
    """A fresh batch norm has gamma 1, beta 0, mean 0 and variance 1."""
    values = [param.value.tolist() for param in nn.BatchNorm(1).named_params().values()]
    assert [[1.0], [0.0], [0.0], [1.0]] == values
