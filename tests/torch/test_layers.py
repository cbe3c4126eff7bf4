"""Burn's params, loaded into torch's layers, give Burn's outputs (S9, S10, R91, R119 to R125)."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import bpk_lite.torch as bt
from bpk_lite.records import ModuleRecord
from tests.torch import burn


def conv(kind):
    def make(c):
        if c.get("padding") == "Same":
            padding = "same"
        elif c.get("padding") == "Valid":
            padding = 0
        elif isinstance(c["padding"], dict):
            sides = c["padding"]["Explicit"]
            half = len(sides) // 2
            if sides[:half] != sides[half:]:
                return None  # torch pads both sides alike
            padding = tuple(sides[:half])
        else:
            padding = c["padding"]
        kernel = c["kernel_size"]
        if padding == "same" and any(k % 2 == 0 for k in [kernel] if isinstance(k, int)):
            return None
        options = {key: c[key] for key in ("stride", "dilation", "groups", "bias")}
        if "padding_out" in c:
            options["output_padding"] = c["padding_out"]
        channels = c.get("channels") or (c["channels_in"], c["channels_out"])
        if padding == "same" and not isinstance(kernel, int) and any(k % 2 == 0 for k in kernel):
            return None  # what is left over goes to another side
        return kind(*channels, kernel, padding=padding, **options)

    return make


def norm(kind, *names):
    return lambda c: kind(*(c[name] for name in names), eps=c["epsilon"])


def lstm(c):
    if c["clip"] or c["input_forget"] or c.get("reverse"):
        return None
    return nn.LSTM(c["d_input"], c["d_hidden"], batch_first=True)


MAKERS = {
    "Linear": lambda c: (
        nn.Linear(c["d_input"], c["d_output"], bias=c["bias"]) if c["layout"] == "Row" else None
    ),
    "Embedding": lambda c: nn.Embedding(c["n_embedding"], c["d_model"]),
    **{
        name: conv(getattr(nn, name))
        for name in (f"Conv{kind}{rank}d" for kind in ("", "Transpose") for rank in (1, 2, 3))
    },
    "BatchNorm": norm(nn.BatchNorm2d, "num_features"),
    "LayerNorm": lambda c: nn.LayerNorm(c["d_model"], eps=c["epsilon"], bias=c["bias"]),
    "GroupNorm": lambda c: nn.GroupNorm(
        c["num_groups"], c["num_channels"], eps=c["epsilon"], affine=c["affine"]
    ),
    "InstanceNorm": lambda c: nn.InstanceNorm2d(
        c["num_channels"], eps=c["epsilon"], affine=c["affine"]
    ),
    "RmsNorm": norm(nn.RMSNorm, "d_model"),
    "PRelu": lambda c: nn.PReLU(c["num_parameters"]),
    "Lstm": lstm,
    "Gru": lambda c: (
        nn.GRU(c["d_input"], c["d_hidden"], batch_first=True) if c["reset_after"] else None
    ),
    "Rnn": lambda c: nn.RNN(c["d_input"], c["d_hidden"], batch_first=True),
    "BiLstm": lambda c: nn.LSTM(c["d_input"], c["d_hidden"], batch_first=True, bidirectional=True),
    "BiGru": lambda c: nn.GRU(c["d_input"], c["d_hidden"], batch_first=True, bidirectional=True),
    "MultiHeadAttention": lambda c: (
        None
        if c["quiet_softmax"]
        else nn.MultiheadAttention(c["d_model"], c["n_heads"], batch_first=True)
    ),
}
CASES = [
    (index, row, made)
    for index, row in enumerate(burn.LAYERS)
    if row["layer"] in MAKERS and (made := MAKERS[row["layer"]](row["config"])) is not None
]


def outputs(layer, row):
    """Run a torch layer on Burn's inputs; return its outputs under Burn's names."""
    given = {name: burn.values(each) for name, each in row["inputs"].items()}
    if row["layer"] == "Embedding":
        return {"y": layer(given["ids"])}
    if row["layer"] == "MultiHeadAttention":
        masks = {}
        if "mask_pad" in given:
            masks = {
                "key_padding_mask": given["mask_pad"],
                "attn_mask": given["mask_attn"].repeat_interleave(layer.num_heads, 0),
            }
        context, weights = layer(
            given["query"], given["key"], given["value"], average_attn_weights=False, **masks
        )
        return {"context": context, "weights": weights}
    if isinstance(layer, nn.RNNBase):
        start = {name: given[name].unsqueeze(0) for name in ("hidden", "cell") if name in given}
        state = None
        if start:
            state = (start["hidden"], start["cell"]) if "cell" in start else start["hidden"]
        y, state = layer(given["x"], state)
        hidden, cell = state if isinstance(state, tuple) else (state, None)
        found = {"y": y, "hidden": hidden, "cell": cell}
        if not layer.bidirectional:
            found |= {name: found[name].squeeze(0) for name in ("hidden",)}
            found["cell"] = None if cell is None else cell.squeeze(0)
        return found
    if isinstance(layer, nn.BatchNorm2d) and given["x"].ndim != 4:
        return {"y": nn.functional.batch_norm(
            given["x"], layer.running_mean, layer.running_var, layer.weight, layer.bias,
            eps=layer.eps,
        )}  # fmt: skip
    return {"y": layer(given["x"])}


@pytest.mark.parametrize(
    ("row", "layer"), [pytest.param(r, m, id=f"{r['layer']}-{i}") for i, r, m in CASES]
)
def test_burns_params_give_burns_outputs(row, layer):
    """A layer that takes over Burn's params computes what Burn did, to 1e-5."""
    layer.eval()
    bt.load_record(layer, burn.record(row["params"]))
    with torch.no_grad():
        found = outputs(layer, row)
    padded = "mask_pad" in row["inputs"]
    for name, expected in row["outputs"].items():
        if padded and not torch.isfinite(found[name]).all():
            continue  # a row that is masked whole: Burn's masks are -1e4, torch's are -inf (R123)
        burn.close(expected, found[name], 1e-5)


@pytest.mark.parametrize(
    ("row", "layer"), [pytest.param(r, m, id=f"{r['layer']}-{i}") for i, r, m in CASES]
)
def test_a_layer_goes_back_as_burn_had_it(row, layer):
    """Saved again, the layer gives Burn's record: paths, order, ids, shapes and bytes (R11, R34)."""
    expected = burn.record(row["params"])
    bt.load_record(layer, expected)
    found = bt.into_record(layer)
    assert list(expected.tensors) == list(found.tensors)
    running = {"running_mean", "running_var"}
    for name, tensor in expected.tensors.items():
        assert (tensor.dtype, tensor.shape) == (found[name].dtype, found[name].shape)
        assert tensor.to_bytes() == found[name].to_bytes()
        assert name in running or tensor.param_id == found[name].param_id


def test_every_kind_of_layer_is_covered():
    """No layer that the two share has dropped out of the cases above."""
    assert set(MAKERS) == {row["layer"] for _, row, _ in CASES}


def test_burns_zoo_loads_into_torch_of_the_same_shape():
    """Burn's record of a network with convolution, batch norm and linear layer loads by its names."""

    class ConvBn(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 3, 3)
            self.norm = nn.BatchNorm2d(3)
            self.fc = nn.Linear(3, 2)

    module = ConvBn()
    path = burn.RECORDS / "module_conv_bn.bpk"
    bt.load_record(module, ModuleRecord.load(path))
    record = ModuleRecord.load(path)
    assert record["fc.weight"].numpy().T.tolist() == module.fc.weight.tolist()
    assert record["norm.running_var"].numpy().tolist() == module.norm.running_var.tolist()
    saved = bt.into_record(module)
    assert list(record.tensors) == list(saved.tensors)
    ids = {name: tensor.param_id for name, tensor in record.tensors.items()}
    kept = {n: t.param_id for n, t in saved.tensors.items() if "running" not in n}
    assert kept == {n: i for n, i in ids.items() if "running" not in n}
