"""What real Burn recorded of layers and optimizers, as torch modules, tensors and records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from bpk_lite.pack import DType, Tensor
from bpk_lite.records import ModuleRecord

FIXTURES = Path(__file__).parent.parent / "fixtures"
RECORDS = FIXTURES / "burn" / "records"
LAYERS = json.loads((FIXTURES / "records" / "layers.json").read_text())["layers"]
RUNS = {
    row["name"]: row
    for row in json.loads((RECORDS / "manifest.json").read_text())["optimizers"]
    if "steps" in row
}


def tensor(row, name=None):
    """Return a row with dtype, shape and hex as a tensor of ours."""
    return Tensor.from_bytes(
        name or row["path"],
        row["dtype"],
        row["shape"],
        bytes.fromhex(row["hex"]),
        param_id=row.get("id"),
    )


def values(row):
    """Return a row as a torch tensor, in its dtype."""
    found = tensor(row, "x")
    if found.dtype == DType.BF16:
        bits = np.frombuffer(found.to_bytes(), "<i2").copy()
        return torch.from_numpy(bits).view(torch.bfloat16).reshape(found.shape)
    return torch.from_numpy(found.numpy().copy())


def record(rows):
    """Return rows of params as a module record."""
    return ModuleRecord([tensor(row) for row in rows])


def close(expected, found, tolerance=1e-6):
    """Compare a row of Burn with a torch tensor."""
    np.testing.assert_allclose(
        found.detach().double().numpy(),
        values(expected).double().numpy(),
        rtol=tolerance,
        atol=tolerance,
    )


def grads_of(row, module):
    """Give the parameters of `module` the gradients of a step of Burn, in torch's layout."""
    import bpk_lite.torch as bt

    given = {each["path"]: each["hex"] for each in row["grads"]}
    for piece in bt.layout(module).pieces:
        dtype = row["params"][0]["dtype"]
        grad = values({"dtype": dtype, "shape": list(piece.shape), "hex": given[piece.path]})
        piece.tensor.grad = (grad.t() if piece.transposed else grad).contiguous()
