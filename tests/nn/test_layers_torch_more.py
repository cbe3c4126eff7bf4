"""Convolutions, norms, pools, recurrent layers and attention agree with PyTorch's."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import Tensor
from tests.support import desktop_module

pytestmark = pytest.mark.desktop
torch = desktop_module("torch")
T = torch.nn


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def give(layer, **tensors):
    """Load PyTorch tensors into a layer."""
    layer.load_tensors(
        {n: Tensor.from_array(n, t.detach().contiguous().numpy()) for n, t in tensors.items()}
    )
    return layer


def close(expected, found):
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=2e-5, atol=1e-5)


CONVS = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "groups": 2},
    {"groups": 4, "padding": 2, "bias": False},
]


@pytest.mark.parametrize("options", CONVS, ids=repr)
@pytest.mark.parametrize(("dims", "size"), [(1, (17,)), (3, (7, 8, 9))])
def test_convolutions(dims, size, options):
    """Conv1d and Conv3d are torch's (R119)."""
    theirs = getattr(T, f"Conv{dims}d")(4, 8, 3, **options)
    ours = give(getattr(nn, f"Conv{dims}d")(4, 8, 3, **options), **theirs.state_dict())
    x = torch.randn(2, 4, *size)
    close(theirs(x), ours(x.numpy()))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1, "padding_out": 1},
        {"stride": 3, "dilation": 2, "groups": 2},
        {"groups": 4, "padding": 2, "bias": False},
    ],
    ids=repr,
)
@pytest.mark.parametrize(("dims", "size"), [(1, (9,)), (2, (5, 6)), (3, (4, 5, 3))])
def test_transposed_convolutions(dims, size, options):
    """Transposed convolutions are torch's, whose output padding has another name (R119)."""
    renamed = {name.replace("padding_out", "output_padding"): v for name, v in options.items()}
    theirs = getattr(T, f"ConvTranspose{dims}d")(4, 8, 3, **renamed)
    ours = give(getattr(nn, f"ConvTranspose{dims}d")(4, 8, 3, **options), **theirs.state_dict())
    x = torch.randn(2, 4, *size)
    close(theirs(x), ours(x.numpy()))


def affine(theirs):
    """Draw torch's weight and bias and return them under Burn's names."""
    names = {"weight": "gamma", "bias": "beta"}
    state = theirs.state_dict()
    for tensor in state.values():
        torch.nn.init.normal_(tensor)
    return {names[name]: tensor for name, tensor in state.items()}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (T.LayerNorm(6), nn.LayerNorm(6)),
        (T.LayerNorm(6, bias=False, eps=1e-3), nn.LayerNorm(6, bias=False, epsilon=1e-3)),
        (T.RMSNorm(6, eps=1e-5), nn.RmsNorm(6)),
        (T.GroupNorm(2, 4), nn.GroupNorm(2, 4)),
        (T.GroupNorm(4, 4, affine=False), nn.GroupNorm(4, 4, affine=False)),
        (T.InstanceNorm2d(4, affine=True), nn.InstanceNorm(4)),
        (T.LocalResponseNorm(3, alpha=0.1), nn.LocalResponseNorm(3, alpha=0.1)),
        (T.LocalResponseNorm(4, alpha=0.1, k=2.0), nn.LocalResponseNorm(4, alpha=0.1, k=2.0)),
        (T.LocalResponseNorm(9), nn.LocalResponseNorm(9)),
    ],
    ids=repr,
)
def test_norms(theirs, ours):
    """Norms are torch's (R120)."""
    give(ours, **affine(theirs))
    x = torch.randn(3, 4, 5, 6)
    close(theirs(x), ours(x.numpy()))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (T.AvgPool2d(2, ceil_mode=True), nn.AvgPool2d(2, ceil_mode=True)),
        (T.AvgPool2d(3, 2, 1), nn.AvgPool2d(3, stride=2, padding=1)),
        (
            T.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
            nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
        ),
        (
            T.MaxPool2d(3, 2, 1, dilation=2, ceil_mode=True),
            nn.MaxPool2d(3, stride=2, padding=1, dilation=2, ceil_mode=True),
        ),
        (T.AdaptiveAvgPool2d((3, 5)), nn.AdaptiveAvgPool2d((3, 5))),
        (T.AdaptiveAvgPool2d(20), nn.AdaptiveAvgPool2d(20)),
        (T.PixelShuffle(2), nn.PixelShuffle(2)),
    ],
    ids=repr,
)
def test_pools(theirs, ours):
    """Pools and pixel shuffle are torch's (R122, R126)."""
    x = torch.randn(2, 4, 12, 11)
    close(theirs(x), ours(x.numpy()))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (T.MaxPool1d(3, 2, 1), nn.MaxPool1d(3, stride=2, padding=1)),
        (T.AvgPool1d(3, 2, 1), nn.AvgPool1d(3, stride=2, padding=1)),
        (T.AdaptiveAvgPool1d(4), nn.AdaptiveAvgPool1d(4)),
    ],
    ids=repr,
)
def test_pools_of_one_dimension(theirs, ours):
    """The same in 1-D."""
    x = torch.randn(2, 4, 13)
    close(theirs(x), ours(x.numpy()))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (T.ReLU6(), nn.Relu6()),
        (T.LeakyReLU(0.2), nn.LeakyRelu(0.2)),
        (T.Threshold(0.7, 0), nn.ThresholdedRelu(0.7)),
        (T.ELU(0.7), nn.Elu(0.7)),
        (T.CELU(0.7), nn.Celu(0.7)),
        (T.SELU(), nn.Selu()),
        (T.Sigmoid(), nn.Sigmoid()),
        (T.LogSigmoid(), nn.LogSigmoid()),
        (T.Hardsigmoid(), nn.HardSigmoid(1 / 6)),
        (T.SiLU(), nn.Silu()),
        (T.Hardswish(), nn.HardSwish()),
        (T.Softplus(2.0), nn.Softplus(2.0)),
        (T.Mish(), nn.Mish()),
        (T.Softsign(), nn.Softsign()),
        (T.Tanh(), nn.Tanh()),
        (T.Tanhshrink(), nn.Tanhshrink()),
        (T.Hardtanh(-0.5, 2), nn.Hardtanh(-0.5, 2)),
        (T.Hardshrink(0.7), nn.HardShrink(0.7)),
        (T.Softshrink(0.7), nn.SoftShrink(0.7)),
        (T.GLU(1), nn.Glu(1)),
        (T.Softmax(1), nn.Softmax(1)),
        (T.Softmin(1), nn.Softmin(1)),
        (T.LogSoftmax(1), nn.LogSoftmax(1)),
        (T.PReLU(6), nn.PRelu(6)),
    ],
    ids=repr,
)
def test_activations(theirs, ours):
    """Activations are torch's (R121)."""
    x = 5 * torch.randn(50, 6)
    close(theirs(x), ours(x.numpy()))


def gates(theirs, names, suffix=""):
    """Split torch's stacked weights into Burn's gates; `names` are in torch's order."""
    given = {}
    for part, transform in (("ih", "input_transform"), ("hh", "hidden_transform")):
        weights = getattr(theirs, f"weight_{part}_l0{suffix}").chunk(len(names))
        biases = getattr(theirs, f"bias_{part}_l0{suffix}").chunk(len(names))
        for name, weight, bias in zip(names, weights, biases, strict=True):
            given[f"{name}.{transform}.weight"] = weight.T
            given[f"{name}.{transform}.bias"] = bias
    return given


LSTM = ("input_gate", "forget_gate", "cell_gate", "output_gate")
GRU = ("reset_gate", "update_gate", "new_gate")


def test_lstm():
    """An LSTM is torch's, gates in another order (R125)."""
    theirs = T.LSTM(3, 5, batch_first=True)
    ours = give(nn.Lstm(3, 5), **gates(theirs, LSTM))
    x, cell, hidden = torch.randn(2, 7, 3), torch.randn(2, 5), torch.randn(2, 5)
    expected, (h, c) = theirs(x, (hidden[None], cell[None]))
    found, state = ours(x.numpy(), (cell.numpy(), hidden.numpy()))
    close(expected, found)
    close(h[0], state.hidden)
    close(c[0], state.cell)


def test_bidirectional_lstm():
    """A bidirectional LSTM is torch's, states stacked in the same order (R125)."""
    theirs = T.LSTM(3, 5, batch_first=True, bidirectional=True)
    both = {f"forward.{name}": t for name, t in gates(theirs, LSTM).items()}
    both |= {f"reverse.{name}": t for name, t in gates(theirs, LSTM, "_reverse").items()}
    ours = give(nn.BiLstm(3, 5), **both)
    x, cell, hidden = torch.randn(2, 7, 3), torch.randn(2, 2, 5), torch.randn(2, 2, 5)
    expected, (h, c) = theirs(x, (hidden, cell))
    found, state = ours(x.numpy(), (cell.numpy(), hidden.numpy()))
    close(expected, found)
    close(h, state.hidden)
    close(c, state.cell)


def test_gru():
    """A GRU with the reset after the product is torch's (R125)."""
    theirs = T.GRU(3, 5, batch_first=True)
    ours = give(nn.Gru(3, 5), **gates(theirs, GRU))
    x, hidden = torch.randn(2, 7, 3), torch.randn(2, 5)
    close(theirs(x, hidden[None])[0], ours(x.numpy(), hidden.numpy()))


def test_bidirectional_gru():
    """A bidirectional GRU is torch's (R125)."""
    theirs = T.GRU(3, 5, batch_first=True, bidirectional=True)
    both = {f"forward.{name}": t for name, t in gates(theirs, GRU).items()}
    both |= {f"reverse.{name}": t for name, t in gates(theirs, GRU, "_reverse").items()}
    ours = give(nn.BiGru(3, 5), **both)
    x, hidden = torch.randn(2, 7, 3), torch.randn(2, 2, 5)
    expected, state = theirs(x, hidden)
    found, last = ours(x.numpy(), hidden.numpy())
    close(expected, found)
    close(state, last)


def test_rnn():
    """A plain recurrent layer is torch's (R125)."""
    theirs = T.RNN(3, 5, batch_first=True)
    ours = give(nn.Rnn(3, 5), **gates(theirs, ("gate",)))
    x, hidden = torch.randn(2, 7, 3), torch.randn(2, 5)
    expected, state = theirs(x, hidden[None])
    found, last = ours(x.numpy(), hidden.numpy())
    close(expected, found)
    close(state[0], last)


def test_bidirectional_rnn():
    """A bidirectional recurrent layer is torch's (R125)."""
    theirs = T.RNN(3, 5, batch_first=True, bidirectional=True)
    both = {f"forward.{name}": t for name, t in gates(theirs, ("gate",)).items()}
    both |= {f"reverse.{name}": t for name, t in gates(theirs, ("gate",), "_reverse").items()}
    ours = give(nn.BiRnn(3, 5), **both)
    x, hidden = torch.randn(2, 7, 3), torch.randn(2, 2, 5)
    expected, state = theirs(x, hidden)
    found, last = ours(x.numpy(), hidden.numpy())
    close(expected, found)
    close(state, last)


def test_attention():
    """Attention is torch's, its three inputs in one matrix (R123)."""
    theirs = T.MultiheadAttention(8, 2, batch_first=True)
    given = {}
    rows, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for name, weight, bias in zip(("query", "key", "value"), rows, biases, strict=True):
        given |= {f"{name}.weight": weight.T, f"{name}.bias": bias}
    out = theirs.out_proj
    given |= {"output.weight": out.weight.T, "output.bias": out.bias}
    ours = give(nn.MultiHeadAttention(8, 2), **given)
    query, key, value = torch.randn(3, 4, 8), torch.randn(3, 5, 8), torch.randn(3, 5, 8)
    pad = torch.zeros(3, 5, dtype=torch.bool)
    pad[1, 3:] = True
    expected, weights = theirs(query, key, value, key_padding_mask=pad, average_attn_weights=False)
    found = ours(query.numpy(), key.numpy(), value.numpy(), mask_pad=pad.numpy())
    close(expected, found.context)
    close(weights, found.weights)


def test_embedding():
    """An embedding is torch's."""
    theirs = T.Embedding(7, 3)
    ids = torch.randint(0, 7, (2, 5))
    close(theirs(ids), give(nn.Embedding(7, 3), **theirs.state_dict())(ids.numpy()))


def test_lora_is_peft():
    """A LoRA weight is base + alpha/rank · a @ b, computed by torch (R18)."""
    layer = nn.lora(nn.Linear(4, 3), rank=2, alpha=3)
    layer.weight.adapter.b.value = np.arange(6, dtype="f4").reshape(2, 3)
    adapter = layer.weight.adapter
    w, a, b, bias = (
        torch.from_numpy(p.value) for p in (layer.weight, adapter.a, adapter.b, layer.bias)
    )
    x = torch.randn(5, 4)
    close(x @ w + 1.5 * (x @ a @ b) + bias, layer(x.numpy()))
