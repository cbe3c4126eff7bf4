"""Real Burn takes records of torch modules of its zoo's shapes (R11, R25)."""

from __future__ import annotations

import hashlib
import warnings

import pytest
import torch
from torch import nn

import bpk_lite.torch as bt

pytestmark = pytest.mark.oracle


class Parts(nn.Module):
    """A struct of given fields."""

    def __init__(self, **fields):
        super().__init__()
        for name, field in fields.items():
            setattr(self, name, field)


ZOO = {
    "linear_row": lambda: nn.Linear(4, 3),
    "mlp": lambda: Parts(layers=nn.ModuleList([nn.Linear(4, 5), nn.Linear(5, 5), nn.Linear(5, 2)])),
    "conv_bn": lambda: Parts(
        conv=nn.Conv2d(1, 3, 3), norm=nn.BatchNorm2d(3), fc=nn.Linear(3, 2)
    ),
    "norms": lambda: Parts(
        layer=nn.LayerNorm(4), layer_plain=nn.LayerNorm(4, bias=False), group=nn.GroupNorm(2, 4),
        instance=nn.InstanceNorm1d(3, affine=True), rms=nn.RMSNorm(4), prelu=nn.PReLU(2),
        embedding=nn.Embedding(5, 2),
    ),
    "convs": lambda: Parts(
        c1=nn.Conv1d(2, 4, 3, groups=2), c2=nn.Conv2d(2, 3, (2, 3), bias=False),
        c3=nn.Conv3d(1, 2, 2), t1=nn.ConvTranspose1d(2, 3, 3),
        t2=nn.ConvTranspose2d(2, 4, (2, 3), groups=2), t3=nn.ConvTranspose3d(1, 2, 2),
    ),
    "rnns": lambda: Parts(
        lstm=nn.LSTM(2, 3), gru=nn.GRU(2, 3), rnn=nn.RNN(2, 3),
        bilstm=nn.LSTM(2, 2, bidirectional=True), bigru=nn.GRU(2, 2, bidirectional=True),
    ),
    "attention": lambda: Parts(mha=nn.MultiheadAttention(4, 2)),
}  # fmt: skip
# what torch has no module for: a deformable convolution, a coupled LSTM, cross attention
PARTIAL = {"convs", "rnns", "attention"}


@pytest.mark.parametrize("name", ZOO)
def test_burn_loads_what_torch_wrote(name, oracle, tmp_path):
    """Every path is known, every shape fits, and the values and ids are those that were written."""
    module = ZOO[name]()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = bt.into_record(module)
    path = record.save(tmp_path / name)
    options = ["--allow-partial"] if name in PARTIAL else []
    answer = oracle("oracle-record", "load-module", name, path, *options)
    assert "ok" == answer["outcome"]
    found = {row["path"]: row for row in answer["params"]}
    for tensor in record.tensors.values():
        row = found[tensor.name]
        assert hashlib.sha256(tensor.to_bytes()).hexdigest() == row["sha256"]
        assert "running" in tensor.name or tensor.param_id == row["id"]
    if name not in PARTIAL:
        assert list(record.tensors) == list(found)
