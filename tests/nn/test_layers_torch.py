"""Layers agree with PyTorch's where the two define the same."""

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import Tensor
from tests.support import desktop_module

pytestmark = pytest.mark.desktop
torch = desktop_module("torch")


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
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"stride": (3, 1), "padding": (2, 0)},
        {"dilation": (2, 3), "padding": 3},
        {"groups": 4},
        {"groups": 8, "padding": 1},
        {"bias": False},
    ],
    ids=repr,
)
def test_conv2d(options):
    """Conv2d is torch's, for symmetric padding (R119)."""
    theirs = torch.nn.Conv2d(8, 16, (3, 2), **options)
    ours = give(nn.Conv2d(8, 16, (3, 2), **options), **theirs.state_dict())
    x = torch.randn(5, 8, 13, 11)
    close(theirs(x), ours(x.numpy()))


def test_same_padding_without_stride():
    """Padding "Same" is torch's "same" where the kernel is odd and nothing is dilated (R118)."""
    theirs = torch.nn.Conv2d(2, 3, (3, 5), padding="same")
    ours = give(nn.Conv2d(2, 3, (3, 5), padding="Same"), **theirs.state_dict())
    x = torch.randn(2, 2, 7, 9)
    close(theirs(x), ours(x.numpy()))


@pytest.mark.parametrize("layout", ["Row", "Col"])
def test_linear(layout):
    """Linear is torch's: ``Col`` saves torch's own layout, ``Row`` its transpose (R20)."""
    theirs = torch.nn.Linear(6, 4)
    weight = theirs.weight if layout == "Col" else theirs.weight.T
    ours = give(nn.Linear(6, 4, layout=layout), weight=weight, bias=theirs.bias)
    x = torch.randn(2, 3, 6)
    close(theirs(x), ours(x.numpy()))


@pytest.mark.parametrize("shape", [(7, 5), (7, 5, 3), (7, 5, 3, 4)], ids=str)
def test_batch_norm(shape):
    """BatchNorm is torch's in evaluation mode, at each rank (R120)."""
    kinds = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}
    theirs = kinds[len(shape)](5)
    x = torch.randn(shape) * 3 + 2
    theirs(x)
    with torch.no_grad():
        theirs.weight.uniform_(0.5, 2)
        theirs.bias.uniform_(-1, 1)
    ours = give(
        nn.BatchNorm(5),
        gamma=theirs.weight,
        beta=theirs.bias,
        running_mean=theirs.running_mean,
        running_var=theirs.running_var,
    )
    close(theirs.eval()(x), ours(x.numpy()))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1},
        {"kernel_size": 2, "stride": 1, "dilation": (2, 3)},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    ],
    ids=repr,
)
def test_max_pool2d(options):
    """MaxPool2d is torch's, bit for bit (R122)."""
    x = torch.randn(2, 3, 10, 9)
    theirs = torch.nn.MaxPool2d(**options)(x)
    ours = nn.MaxPool2d(options.pop("kernel_size"), **options)(x.numpy())
    assert theirs.numpy().tolist() == ours.tolist()


def test_activations():
    """Relu, gelu, its approximation, softmax and log_softmax are torch's (R121)."""
    x = torch.randn(40, 50) * 4
    values = x.numpy()
    close(torch.nn.functional.relu(x), nn.relu(values))
    close(torch.nn.functional.gelu(x), nn.gelu(values))
    close(torch.nn.functional.gelu(x, approximate="tanh"), nn.gelu(values, approximate=True))
    close(torch.softmax(x, 0), nn.softmax(values, 0))
    close(torch.log_softmax(x, 1), nn.log_softmax(values))
