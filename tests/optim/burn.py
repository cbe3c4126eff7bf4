"""What real Burn recorded of its optimizers and schedulers, and the same things built here."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from bpk_lite import nn, optim
from bpk_lite.nn import ParamGroup
from bpk_lite.optim import lr
from bpk_lite.pack import DType, Scalar, Tensor
from bpk_lite.records import OptimizerRecord

FOLDER = Path(__file__).parent.parent / "fixtures" / "burn" / "records"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())
CASES = json.loads((FOLDER / "errors.json").read_text())["cases"]
RUNS = {row["name"]: row for row in MANIFEST["optimizers"] if "steps" in row}
SCHEDULES = {row["name"]: row for row in MANIFEST["schedulers"]}

CONFIGS: dict[str, Any] = {
    "sgd": optim.SgdConfig(),
    "sgd_wd": optim.SgdConfig(weight_decay=0.1),
    "sgd_momentum": optim.SgdConfig(momentum=optim.Momentum()),
    "sgd_momentum_wd": optim.SgdConfig(momentum=optim.Momentum(0.8, 0.0), weight_decay=0.1),
    "sgd_nesterov": optim.SgdConfig(momentum=optim.Momentum(0.9, 0.0, nesterov=True)),
    "sgd_clip_value": optim.SgdConfig(grad_clipping=optim.ClipValue(0.25)),
    "sgd_clip_norm": optim.SgdConfig(grad_clipping=optim.ClipNorm(0.5)),
    "adam": optim.AdamConfig(),
    "adam_amsgrad": optim.AdamConfig(amsgrad=True),
    "adam_wd": optim.AdamConfig(weight_decay=0.1, epsilon=1e-8),
    "adam_clip": optim.AdamConfig(grad_clipping=optim.ClipNorm(0.5)),
    "adam_f16": optim.AdamConfig(),
    "adam_bf16": optim.AdamConfig(),
    "adam_f64": optim.AdamConfig(),
    "adam_conv": optim.AdamConfig(),
    "adamw": optim.AdamWConfig(),
    "adamw_amsgrad": optim.AdamWConfig(amsgrad=True, weight_decay=0.1),
    "adamw_cautious": optim.AdamWConfig(cautious_weight_decay=True, weight_decay=0.1),
    "adamw_nodecay": optim.AdamWConfig(weight_decay=0),
    "adan": optim.AdanConfig(),
    "adan_wd": optim.AdanConfig(weight_decay=0.1),
    "adan_noprox_wd": optim.AdanConfig(weight_decay=0.1, no_prox=True),
    "adagrad": optim.AdaGradConfig(),
    "adagrad_decay": optim.AdaGradConfig(lr_decay=0.1, weight_decay=0.1),
    "rmsprop": optim.RmsPropConfig(),
    "rmsprop_nomomentum": optim.RmsPropConfig(momentum=0),
    "rmsprop_centered": optim.RmsPropConfig(centered=True, weight_decay=0.1),
    "adafactor": optim.AdafactorConfig(),
    "adafactor_abs": optim.AdafactorConfig(
        relative_step=False, scale_parameter=False, weight_decay=0.1, clip_threshold=0.5
    ),
    "adafactor_conv": optim.AdafactorConfig(),
    "adafactor_f16": optim.AdafactorConfig(),
    "lamb": optim.LambConfig(),
    "lamb_wd": optim.LambConfig(weight_decay=0.1),
    "lamb_notrust": optim.LambConfig(weight_decay=0.1, use_trust_ratio=False),
    "lion": optim.LionConfig(),
    "lion_wd": optim.LionConfig(weight_decay=0.1),
    "muon": optim.MuonConfig(),
    "muon_tall": optim.MuonConfig(weight_decay=0.1),
    "muon_match": optim.MuonConfig(adjust_lr="match_rms_adamw"),
    "groups": optim.AdamWConfig(),
}

SCHEDULERS: dict[str, Any] = {
    "constant": lambda: lr.Constant(0.01),
    "number": lambda: lr.Constant(0.02),
    "linear": lambda: lr.Linear(0.5, 0.1, 8),
    "cosine": lambda: lr.Cosine(0.5, 7),
    "cosine_min": lambda: lr.Cosine(0.5, 7, 0.05),
    "exponential": lambda: lr.Exponential(0.5, 0.9),
    "noam": lambda: lr.Noam(1.5, 4, 64),
    "noam_default": lambda: lr.Noam(1.0),
    "step": lambda: lr.Step(0.5, 3),
    "step_gamma": lambda: lr.Step(0.5, 2, 0.7),
    "composed_prod": lambda: lr.Composed(
        [lr.Linear(1, 0.5, 6), lr.Exponential(0.5, 0.9), lr.Constant(0.5)]
    ),
    "composed_sum": lambda: lr.Composed([lr.Cosine(0.5, 7), lr.Step(0.5, 3)], "sum"),
    "composed_avg": lambda: lr.Composed(
        [lr.Noam(1.5, 4, 64), lr.Linear(0.5, 0.1, 8), lr.Constant(0.01)], "avg"
    ),
    "composed_nested": lambda: lr.Composed(
        [lr.Composed([lr.Linear(0.5, 0.1, 8), lr.Exponential(0.5, 0.9)], "sum"), lr.Step(1, 3)]
    ),
    "composed_empty": lambda: lr.Composed([]),
    "sequential": lambda: lr.Sequential(
        [lr.Linear(0.1, 0.5, 3), lr.Cosine(0.5, 10), lr.Constant(0.001)], [3, 12]
    ),
    "sequential_nested": lambda: lr.Sequential(
        [
            lr.Sequential([lr.Noam(1.5, 4, 64), lr.Exponential(0.5, 0.9)], [2]),
            lr.Composed([lr.Constant(0.5), lr.Step(1, 4)]),
        ],
        [6],
    ),
    "groups": lambda: (
        lr.ModuleScheduler(
            lr.Composed(
                [
                    lr.Constant(1),
                    lr.Sequential([lr.Linear(0.1, 0.5, 3), lr.Exponential(0.5, 0.9)], [3]),
                ]
            )
        )
        .add_group(ParamGroup.path("bias"), lr.Step(0.5, 3))
        .add_group(ParamGroup.predicate("norm"), lr.Constant(0.01))
    ),
}


def array(row: dict[str, Any], dtype: str = "", shape: Any = None) -> np.ndarray:
    """Return the array that a row of the recordings describes."""
    kind = DType.parse(dtype or row["dtype"]).stored
    return np.frombuffer(bytes.fromhex(row["hex"]), kind).reshape(
        row["shape"] if shape is None else shape
    )


class Recorded(nn.Module):
    """A module of the params of a recording."""

    def __init__(self, rows):
        for row in rows:
            value = array(row)
            param = nn.Param.of(value, param_id=row["id"], require_grad=row["require_grad"])
            node, *parts = row["path"].split(".")
            if parts:
                nested = vars(self).setdefault(node, {})
                nested[parts[0]] = param
            else:
                setattr(self, node, param)

    def state(self):
        return {path: param.value for path, param in self.named_params().items()}


def optimizer(name: str, rows) -> optim.ModuleOptimizer:
    """Return the optimizer of a recording over a module of `rows`."""
    made = optim.ModuleOptimizer(Recorded(rows), CONFIGS[name])
    if name == "groups":
        made.add_group(ParamGroup.predicate("weight"), optim.MuonConfig())
        made.add_group(
            ParamGroup.path("bias"),
            optim.SgdConfig(momentum=optim.Momentum()),
            clipping=optim.ClipValue(0.1),
        )
    return made


def gradients(run, step):
    """Return the gradients of a recorded step by path."""
    rows = {row["path"]: row for row in run["initial"]}
    return {
        grad["path"]: array(grad, rows[grad["path"]]["dtype"], rows[grad["path"]]["shape"])
        for grad in step["grads"]
    }


def scalar(row) -> Scalar:
    ((kind, value),) = row.items()
    if kind == "Float":
        value = struct.unpack(">d", bytes.fromhex(value["bits"]))[0]
    return Scalar(kind, value)


def record(row, cls=OptimizerRecord):
    """Return the record that a case gives as input."""
    if "hex" in row:
        return cls.from_bytes(bytes.fromhex(row["hex"]))
    return cls(
        [
            Tensor.from_bytes(
                tensor["name"],
                tensor["dtype"],
                tensor["shape"],
                bytes.fromhex(tensor["hex"]),
                param_id=tensor.get("param_id"),
            )
            for tensor in row.get("tensors", ())
        ],
        scalars={name: scalar(value) for name, value in row.get("scalars", {}).items()},
        metadata=row.get("metadata", {}),
    )


def described(made) -> dict[str, Any]:
    """Describe a record as the recordings do: tensors by name with their digests."""
    return {
        "metadata": dict(made.metadata),
        "scalars": dict(made.scalars),
        "tensors": {
            name: (str(t.dtype), t.shape, hashlib.sha256(t.buffer()).hexdigest())
            for name, t in made.tensors.items()
        },
    }


def expected(row) -> dict[str, Any]:
    """Return a recorded state in the same form."""
    return {
        "metadata": row["metadata"],
        "scalars": {name: scalar(value) for name, value in row["scalars"].items()},
        "tensors": {
            t["name"]: (t["dtype"], tuple(t["shape"]), t["sha256"]) for t in row["tensors"]
        },
    }
