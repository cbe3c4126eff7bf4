"""The modules of the recordings, built from their names and containers, with the recorded weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from bpk_lite import nn
from bpk_lite.pack import DType, Reader, Tensor
from bpk_lite.store import (
    BurnToPyTorchAdapter,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    IdentityAdapter,
    PyTorchToBurnAdapter,
    collect,
)

FOLDER = Path(__file__).parent.parent / "fixtures" / "burn" / "store"
FILES = FOLDER / "files"


def rows(name):
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().split("\n") if line]


ADAPTERS = rows("adapters")
APPLY = rows("apply")
LAYOUTS: dict[str, list[dict]] = {}
for _row in ADAPTERS:
    if "zoo" in _row:
        LAYOUTS.setdefault(_row["zoo"], []).append(_row)


def values(k, shape, dtype, seed):
    """Return the k-th param's recorded weights (README of the fixtures)."""
    j = np.arange(int(np.prod(shape, dtype=int)), dtype=np.int64)
    x = (k * 7919 + j * 104729 + seed * 1299709) % 65536
    if dtype.kind == "bool":
        return ((x >> 3) & 1).astype(np.uint8).reshape(shape)
    if dtype.kind == "int":
        return (x % 100).astype(dtype.stored).reshape(shape)
    floats = ((x - 32768) / 8192).astype(np.float32)
    if dtype == DType.BF16:
        bits = floats.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).reshape(shape)
    return floats.astype(dtype.stored).reshape(shape)


def param(k, row, seed):
    """Return the k-th param of a module."""
    before = row["before"]
    running = before["name"].rpartition(".")[2] in ("running_mean", "running_var")
    if running:
        number = seed * 1000 + (901 if before["name"].endswith("mean") else 902)
    else:
        number = seed * 1000 + k + 1
    shape = tuple(before["shape"])
    if before["dtype"].startswith("QFloat"):
        made = nn.Param(shape, nn.init.Zeros(), param_id=number)
        made.load(Reader.from_bytes((FILES / "quant.bpk").read_bytes())[before["name"]])
        made.id = type(made.id)(number)
        return made
    dtype = DType.parse(before["dtype"])
    made = nn.Param(shape, nn.init.Zeros(), dtype=dtype, running=running, param_id=number)
    stored = values(k, shape, dtype, seed)
    tensor = Tensor.from_bytes("", dtype, shape, stored.tobytes(), param_id=number)
    made.load(tensor)
    made.id = type(made.id)(number)
    return made


def module(name, seed):
    """Return a module of the zoo."""
    if name.startswith("linear_col"):
        made = nn.Linear(3, 2, layout="Col")
        for k, (path, one) in enumerate(made.named_params().items()):
            one.value = values(k, one.shape, DType.F32, seed)
            one.id = type(one.id)(seed * 1000 + k + 1)
            assert path in ("weight", "bias")
        return made
    leaves = [
        (row["before"]["name"].split("."), row["containers"], param(k, row, seed))
        for k, row in enumerate(_layout(name))
    ]
    return node(leaves, 0)


def _layout(name):
    """Return the rows of a module; three that the adapters' recordings lack come from others."""
    if name == "linear_lazy":
        return LAYOUTS["linear"]
    if name == "ints_no_u16":
        by_name = {row["before"]["name"]: row for row in LAYOUTS["ints"]}
        return [by_name[one] for one in ("i64", "u32", "u8", "flag")]
    if name == "mlp_wrong":
        wrong = next(row for row in APPLY if row["zoo"] == name)["outcome"]["params"]
        by_name = {row["before"]["name"]: row for row in LAYOUTS["mlp"]}
        like = {True: by_name["head.weight"], False: by_name["layers.0.weight"]}
        return [{**like[p["name"].startswith("head")], "before": p} for p in wrong]
    return LAYOUTS[name]


def node(leaves, depth):
    """Return the module, list or param that these leaves have in common at a depth."""
    if len(leaves) == 1 and depth == len(leaves[0][0]):
        return leaves[0][2]
    groups: dict[str, list] = {}
    for leaf in leaves:
        groups.setdefault(leaf[0][depth], []).append(leaf)
    kind, _, cls = leaves[0][1][depth].partition(":")
    children = {name: node(group, depth + 1) for name, group in groups.items()}
    if kind == "Enum":
        ((name, child),) = children.items()
        return type(cls, (nn.Variant,), {})(name, child)
    if kind == "Struct":
        made = type(cls, (nn.Module,), {})()
        for name, child in children.items():
            setattr(made, name, child)
        return made
    size = max(map(int, children)) + 1
    items = [children.get(str(i)) for i in range(size)]
    return tuple(items) if kind == "Tuple" else items


def adapter(text):
    """Return the adapter that the recordings call `text`."""
    first, *rest = text.split(",")
    name, _, detail = first.partition("/" if "/" in first else ":")
    if name == "half":
        made = HalfPrecisionAdapter()
        for one in filter(None, detail.split("/")):
            made = made.without_module(one[1:]) if one[0] == "-" else made.with_module(one)
    elif name == "cast":
        made = FloatCastAdapter.to(detail)
    else:
        made = {"identity": IdentityAdapter, "pytorch": PyTorchToBurnAdapter,
                "burn2torch": BurnToPyTorchAdapter}[name]()  # fmt: skip
    for other in rest:
        made = made.chain(adapter(other))
    return made


def digest(tensor):
    return hashlib.sha256(tensor.buffer()).hexdigest()


def state(made):
    """Return dtype, digest and id of every param, by name."""
    return {t.name: (str(t.dtype), digest(t), int(t.param_id)) for t in collect(made)}
