"""Every layer gives what real Burn gave for the same params and input.

``tests/fixtures/records/layers.json`` holds 110 cases that Burn 0.22.1 computed. `BUILDERS`
knows how to build each layer from Burn's configuration.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.pack import Tensor

FIXTURE = Path(__file__).parents[1] / "fixtures" / "records" / "layers.json"
CASES = json.loads(FIXTURE.read_text(encoding="utf-8"))["layers"]
NUMPY = {"F32": "<f4", "I32": "<i4", "Bool(Native)": "?"}


def padding(config):
    """Return Burn's padding as ours: the name, or the numbers in Burn's order."""
    return config if isinstance(config, str) else tuple(config["Explicit"])


def sizes(config):
    return tuple(config) if isinstance(config, list) else config


def conv(layer):
    def build(c):
        channels = c.get("channels") or (c["channels_in"], c["channels_out"])
        options = {name: sizes(c[name]) for name in ("stride", "dilation", "groups", "bias")}
        if "padding_out" in c:
            options |= {"padding": sizes(c["padding"]), "padding_out": sizes(c["padding_out"])}
        else:
            options["padding"] = padding(c["padding"])
        return layer(*channels, sizes(c["kernel_size"]), **options)

    return build


def pool(layer, *more):
    def build(c):
        options = {name: sizes(c[name]) for name in ("ceil_mode", *more)}
        stride = sizes(c.get("strides", c.get("stride")))
        return layer(
            sizes(c["kernel_size"]), stride=stride, padding=padding(c["padding"]), **options
        )

    return build


def built(layer, *names):
    """Build `layer` with the config's entries: `names` in order, all others by keyword."""

    def build(c):
        rest = {name: sizes(c[name]) for name in c.keys() - {*names, "initializer"}}
        for name in ACTIVATIONS & rest.keys():
            rest[name] = getattr(nn, rest[name])()
        return layer(*(c[name] for name in names), **rest)

    return build


ACTIVATIONS = {"activation", "gate_activation", "cell_activation", "hidden_activation"}
HEADS = ("d_model", "d_context", "n_heads", "n_heads_kv", "d_head")
STACK = ("d_model", "d_ff", "n_heads", "n_layers")
RNN = ("d_input", "d_hidden")
BUILDERS = {
    "AdaptiveAvgPool1d": built(nn.AdaptiveAvgPool1d),
    "AdaptiveAvgPool2d": built(nn.AdaptiveAvgPool2d),
    "AvgPool1d": pool(nn.AvgPool1d, "count_include_pad"),
    "AvgPool2d": pool(nn.AvgPool2d, "count_include_pad"),
    "BatchNorm": built(nn.BatchNorm, "num_features"),
    "BiGru": built(nn.BiGru, *RNN),
    "BiLstm": built(nn.BiLstm, *RNN),
    "Conv1d": conv(nn.Conv1d),
    "Conv2d": conv(nn.Conv2d),
    "Conv3d": conv(nn.Conv3d),
    "ConvTranspose1d": conv(nn.ConvTranspose1d),
    "ConvTranspose2d": conv(nn.ConvTranspose2d),
    "ConvTranspose3d": conv(nn.ConvTranspose3d),
    "CrossAttention": built(nn.CrossAttention, *HEADS),
    "Embedding": built(nn.Embedding, "n_embedding", "d_model"),
    "GroupNorm": built(nn.GroupNorm, "num_groups", "num_channels"),
    "Gru": built(nn.Gru, *RNN),
    "InstanceNorm": built(nn.InstanceNorm, "num_channels"),
    "LayerNorm": built(nn.LayerNorm, "d_model"),
    "Linear": built(nn.Linear, "d_input", "d_output"),
    "LocalResponseNorm": built(nn.LocalResponseNorm, "size"),
    "Lstm": built(nn.Lstm, *RNN),
    "MaxPool1d": pool(nn.MaxPool1d, "dilation"),
    "MaxPool2d": pool(nn.MaxPool2d, "dilation"),
    "MultiHeadAttention": built(nn.MultiHeadAttention, "d_model", "n_heads"),
    "PRelu": built(nn.PRelu, "num_parameters"),
    "PixelShuffle": built(nn.PixelShuffle, "upscale_factor"),
    "PositionalEncoding": built(nn.PositionalEncoding, "d_model"),
    "RmsNorm": built(nn.RmsNorm, "d_model"),
    "Rnn": built(nn.Rnn, *RNN),
    "RotaryEncoding": built(nn.RotaryEncoding, "max_sequence_length", "d_model"),
    "SwiGlu": built(nn.SwiGlu, "d_input", "d_output"),
    "TransformerDecoder": built(nn.TransformerDecoder, *STACK),
    "TransformerEncoder": built(nn.TransformerEncoder, *STACK),
    "celu": built(nn.Celu, "alpha"),
    "elu": built(nn.Elu, "alpha"),
    "gelu": built(nn.Gelu),
    "gelu_approximate": lambda _: nn.Gelu(approximate=True),
    "glu": built(nn.Glu, "dim"),
    "hard_shrink": built(nn.HardShrink, "lambda"),
    "hard_sigmoid": built(nn.HardSigmoid),
    "hard_swish": built(nn.HardSwish),
    "hardtanh": built(nn.Hardtanh),
    "leaky_relu": built(nn.LeakyRelu),
    "log_sigmoid": built(nn.LogSigmoid),
    "log_softmax": built(nn.LogSoftmax),
    "mish": built(nn.Mish),
    "quiet_softmax": built(nn.QuietSoftmax),
    "relu": built(nn.Relu),
    "relu6": built(nn.Relu6),
    "selu": built(nn.Selu),
    "sigmoid": built(nn.Sigmoid),
    "silu": built(nn.Silu),
    "soft_shrink": built(nn.SoftShrink, "lambda"),
    "softmax": built(nn.Softmax),
    "softmin": built(nn.Softmin),
    "softplus": built(nn.Softplus),
    "softsign": built(nn.Softsign),
    "tanh": built(nn.Tanh),
    "tanhshrink": built(nn.Tanhshrink),
    "thresholded_relu": built(nn.ThresholdedRelu),
}


def call(layer, inputs):
    """Return the layer's outputs under Burn's names for them."""
    if isinstance(layer, nn.Lstm) and "cell" in inputs:
        out = layer(inputs["x"], (inputs["cell"], inputs["hidden"]))
    else:
        first = next(name for name in ("x", "ids", "target", "query") if name in inputs)
        others = {name: value for name, value in inputs.items() if name != first}
        out = layer(inputs[first], **others)
    if isinstance(out, nn.MhaOutput):
        return out._asdict()
    if isinstance(out, tuple) and isinstance(out[1], nn.LstmState):
        return {"y": out[0], **out[1]._asdict()}
    return dict(zip(("y", "hidden"), out, strict=True)) if isinstance(out, tuple) else {"y": out}


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


def test_every_layer_has_a_builder():
    """All 110 cases are run, and every builder has a case."""
    assert 110 == len(CASES)
    assert set(BUILDERS) == {case["layer"] for case in CASES}


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case['layer']}-{place}" for place, case in enumerate(CASES)]
)
def test_output_is_burns(case):
    """A layer's outputs are Burn's to 1e-6 of the largest element (R118 to R126)."""
    layer = BUILDERS[case["layer"]](case["config"])
    if case["params"]:
        load(layer, case["params"])
    inputs = {name: array(described) for name, described in case["inputs"].items()}
    found = call(layer, inputs)
    assert set(case["outputs"]) == set(found)
    # The mean of numbers of both signs may be far smaller than they are, Burn's own error is not.
    scale = np.abs(inputs["x"]).max() if case["layer"].startswith("Adaptive") else 0
    for name, described in case["outputs"].items():
        expected = array(described)
        assert (expected.shape, expected.dtype) == (found[name].shape, found[name].dtype)
        allowed = 1e-6 * max(scale, np.abs(expected).max())
        assert allowed >= np.abs(expected - found[name]).max()


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["params"]],
    ids=lambda case: case["layer"],
)
def test_params_are_burns(case):
    """A layer declares Burn's params: same paths, same order, same live shapes (R91)."""
    layer = BUILDERS[case["layer"]](case["config"])
    expected = [(p["path"], tuple(p["shape"])) for p in case["params"]]
    assert expected == [(path, param.shape) for path, param in layer.named_params().items()]
