"""The modules of Burn's record fixtures, in Python: same fields, same order, same sizes.

``tests/fixtures/burn/records/manifest.json`` describes them; the names are its ``zoo`` names, which
are also those of the oracle's ``load-module``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np

from bpk_lite import nn
from bpk_lite.nn import init
from bpk_lite.pack import DType

RECORDS = Path(__file__).parents[1] / "fixtures" / "burn" / "records"
MODULES = json.loads((RECORDS / "manifest.json").read_text(encoding="utf-8"))["modules"]


def zeros(*shape, dtype=DType.F32):
    return nn.Param(shape, init.Zeros(), dtype=dtype)


class Fields(nn.Module):
    """A struct: its fields are the keywords, in their order."""

    def __init__(self, **fields):
        for name, value in fields.items():
            setattr(self, name, value)


class Level2(Fields):
    field_names: ClassVar = {"type": "r#type"}  # a raw identifier keeps its prefix (R14)


class Skipping(Fields):
    field_names: ClassVar = {"skipped": None}


def mlp():
    sizes = [(4, 5), (5, 5), (5, 2)]
    layers = [nn.Linear(*size) for size in sizes]
    return Fields(layers=layers, activation=nn.Relu(), dropout=nn.Dropout(0.1), width=5)


def block_conv():
    return nn.Variant("Conv", nn.Conv2d(2, 3, 2))


def block_dense():
    return nn.Variant("Dense", nn.Linear(3, 2))


def option_net():
    layers = [None, None, nn.Linear(2, 1, bias=False)]
    return Fields(a=nn.Linear(2, 2), b=None, layers=layers, norm=None)


def nested():
    level3 = Fields(weight=zeros(2, 2), linear=nn.Linear(2, 2))
    level2 = Level2(level3=level3, type=zeros(3))
    return Fields(zeta=zeros(2), level2=level2, alpha=zeros(1))


def norms():
    return Fields(
        layer=nn.LayerNorm(4),
        layer_plain=nn.LayerNorm(4, bias=False),
        group=nn.GroupNorm(2, 4),
        group_plain=nn.GroupNorm(2, 4, affine=False),
        instance=nn.InstanceNorm(3),
        rms=nn.RmsNorm(4),
        prelu=nn.PRelu(2),
        embedding=nn.Embedding(5, 2),
    )


def convs():
    return Fields(
        c1=nn.Conv1d(2, 4, 3, groups=2),
        c2=nn.Conv2d(2, 3, (2, 3), bias=False),
        c3=nn.Conv3d(1, 2, 2),
        t1=nn.ConvTranspose1d(2, 3, 3),
        t2=nn.ConvTranspose2d(2, 4, (2, 3), groups=2),
        t3=nn.ConvTranspose3d(1, 2, 2),
        deform=nn.DeformConv2d(1, 2, 2),
    )


def rnns():
    return Fields(
        lstm=nn.Lstm(2, 3),
        coupled=nn.Lstm(2, 3, bias=False, input_forget=True),
        gru=nn.Gru(2, 3),
        rnn=nn.Rnn(2, 3),
        bilstm=nn.BiLstm(2, 2),
        bigru=nn.BiGru(2, 2),
    )


def attention():
    return Fields(mha=nn.MultiHeadAttention(4, 2), cross=nn.CrossAttention(4, 6, 2, 1, 2))


def wrapped():
    return Fields(
        act=nn.Activation(nn.PRelu()),
        act_in_ff=nn.PositionWiseFeedForward(2, 3, activation=nn.PRelu()),
        norm=nn.Normalization(nn.GroupNorm(2, 4)),
        swiglu=nn.SwiGlu(2, 3),
        positional=nn.PositionalEncoding(4, max_sequence_size=6),
        rotary=nn.RotaryEncoding(6, 4),
    )


def int_bool():
    return Skipping(
        ids=zeros(2, 3, dtype=DType.I32),
        mask=zeros(5, dtype=DType.BOOL),
        weight=zeros(2),
        table=np.zeros(3, "f4"),
        training=True,
        count=3,
        skipped=nn.Linear(2, 2),
    )


def int_kinds():
    names = ("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")
    return Fields(**{name.lower(): zeros(3, dtype=DType.parse(name)) for name in names})


def float_kinds():
    names = ("F64", "F32", "F16", "BF16")
    return Fields(**{name.lower(): zeros(2, 3, dtype=DType.parse(name)) for name in names})


def shared():
    linear = nn.Linear(2, 2)
    return Fields(left=linear, right=linear)


def ranks():
    shapes = [(2,), (2, 1), (1, 2, 1), (1, 2, 1, 2), (1, 1, 2, 1, 1), (1, 1, 1, 2, 1, 1)]
    fields = {f"r{len(shape)}": zeros(*shape) for shape in shapes}
    return Fields(**fields, empty=zeros(0, 3))


def lora():
    return nn.lora(nn.Linear(4, 3), rank=2, alpha=4)


ZOO = {
    "attention": attention,
    "conv_bn": lambda: Fields(conv=nn.Conv2d(1, 3, 3), norm=nn.BatchNorm(3), fc=nn.Linear(3, 2)),
    "convs": convs,
    "decoder": lambda: nn.TransformerDecoder(4, 8, 2, 1),
    "encoder": lambda: nn.TransformerEncoder(4, 8, 2, 1),
    "enum_net": lambda: Fields(
        first=block_conv(), second=block_dense(), rest=[block_dense(), block_conv()]
    ),
    "enum_net_other": lambda: Fields(
        first=block_dense(), second=block_conv(), rest=[block_dense(), block_conv()]
    ),
    "float_kinds": float_kinds,
    "hollow": lambda: Fields(width=3, name="hollow", pool=nn.MaxPool2d(2)),
    "int_bool": int_bool,
    "int_kinds": int_kinds,
    "linear_col": lambda: nn.Linear(4, 3, layout="Col"),
    "linear_col_square": lambda: nn.Linear(3, 3, layout="Col", bias=False),
    "linear_row": lambda: nn.Linear(4, 3),
    "lora": lora,
    "lora_folded": lambda: nn.Linear(4, 3),
    "mlp": mlp,
    "nested": nested,
    "norms": norms,
    "option_net": option_net,
    "quant_mixed": lambda: nn.Linear(4, 4),
    "quant_q4s_u32": lambda: nn.Linear(4, 8, bias=False),
    "quant_q8f_u32": lambda: nn.Linear(4, 8, bias=False),
    "quant_q8s": lambda: nn.Linear(4, 4, bias=False),
    "quant_q8s_block": lambda: nn.Linear(4, 32, bias=False),
    "ranks": ranks,
    "rnns": rnns,
    "root_param": lambda: zeros(2, 3),
    "shared": shared,
    "tuple_array": lambda: Fields(
        pair=(nn.Linear(2, 3), nn.LayerNorm(3)),
        arr=[nn.Linear(2, 2), nn.Linear(2, 2, bias=False)],
        sizes=[1, 2, 3],
    ),
    "vec12": lambda: [nn.Linear(1, 1) for _ in range(12)],
    "wrapped": wrapped,
}
GROUPS = {
    "predicate 'weight'": nn.ParamGroup.predicate("weight"),
    r"regex '^layers\.[01]\.'": nn.ParamGroup.regex(r"^layers\.[01]\."),
    "predicate '.lora.'": nn.ParamGroup.predicate(".lora."),
    "path 'nothing'": nn.ParamGroup.path("nothing"),
}


def live_bytes(param):
    """Return the raw bytes of a param's live value, as the manifest's digests take them."""
    if param.dtype.kind == "quantized":
        return param.tensor("").to_bytes()
    value = np.ascontiguousarray(param.value)
    return value.reshape(-1).view(np.uint8).tobytes()
