"""Every layer gives what real Burn gave for the same params and input.

``tests/fixtures/records/layers.json`` holds 110 cases that Burn 0.22.1 computed. A case is run when
`BUILDERS` knows how to build its layer; adding a layer means adding a line there.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import Tensor

FIXTURE = Path(__file__).parents[1] / "fixtures" / "records" / "layers.json"
CASES = json.loads(FIXTURE.read_text(encoding="utf-8"))["layers"]
NUMPY = {"F32": "<f4", "I32": "<i4"}


def padding(config):
    """Return Burn's padding as ours: the name, or its (top, left, bottom, right)."""
    return config if isinstance(config, str) else tuple(config["Explicit"])


def linear(config):
    return nn.Linear(
        config["d_input"], config["d_output"], bias=config["bias"], layout=config["layout"]
    )


def conv2d(config):
    return nn.Conv2d(
        *config["channels"],
        tuple(config["kernel_size"]),
        stride=tuple(config["stride"]),
        padding=padding(config["padding"]),
        dilation=tuple(config["dilation"]),
        groups=config["groups"],
        bias=config["bias"],
    )


def max_pool2d(config):
    return nn.MaxPool2d(
        tuple(config["kernel_size"]),
        stride=tuple(config["strides"]),
        padding=padding(config["padding"]),
        dilation=tuple(config["dilation"]),
        ceil_mode=config["ceil_mode"],
    )


BUILDERS = {
    "BatchNorm": lambda c: nn.BatchNorm(c["num_features"], epsilon=c["epsilon"]),
    "Conv2d": conv2d,
    "Linear": linear,
    "MaxPool2d": max_pool2d,
    "gelu": lambda _: nn.Gelu(),
    "gelu_approximate": lambda _: nn.Gelu(approximate=True),
    "log_softmax": lambda c: lambda x: nn.log_softmax(x, c["dim"]),
    "relu": lambda _: nn.Relu(),
    "softmax": lambda c: lambda x: nn.softmax(x, c["dim"]),
}
KNOWN = [case for case in CASES if case["layer"] in BUILDERS]


def array(described):
    """Return the array that a case describes by dtype, shape and bytes."""
    data = np.frombuffer(bytes.fromhex(described["hex"]), NUMPY[described["dtype"]])
    return data.reshape(described["shape"])


def load(layer, params):
    """Load a case's params, which are live values: a ``Col`` weight is saved transposed (R20)."""
    own = layer.named_params()
    values = {p["path"]: own[p["path"]].form.save(array(p)) for p in params}
    layer.load_tensors(
        {
            p["path"]: Tensor.from_array(p["path"], values[p["path"]], param_id=p["id"])
            for p in params
        }
    )


def test_no_builder_is_idle():
    """Every builder has a case in the fixture."""
    assert set(BUILDERS) == {case["layer"] for case in KNOWN}


@pytest.mark.parametrize(
    "case", KNOWN, ids=[f"{case['layer']}-{place}" for place, case in enumerate(KNOWN)]
)
def test_output_is_burns(case):
    """A layer's output is Burn's to 1e-6 of its largest element (R118 to R122)."""
    layer = BUILDERS[case["layer"]](case["config"])
    if case["params"]:
        load(layer, case["params"])
    expected = array(case["outputs"]["y"])
    found = layer(*map(array, case["inputs"].values()))
    assert expected.shape == found.shape
    assert expected.dtype == found.dtype
    assert 0 == np.max(np.abs(expected - found) > 1e-6 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize(
    "case",
    [case for case in KNOWN if case["params"]],
    ids=lambda case: case["layer"],
)
def test_params_are_burns(case):
    """A layer declares Burn's params: same paths, same order, same live shapes (R91)."""
    layer = BUILDERS[case["layer"]](case["config"])
    expected = [(p["path"], tuple(p["shape"])) for p in case["params"]]
    assert expected == [(path, param.shape) for path, param in layer.named_params().items()]
