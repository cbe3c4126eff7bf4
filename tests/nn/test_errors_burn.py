"""Loading ends as it does in real Burn, or differs on purpose.

``tests/fixtures/burn/records/errors.json`` holds what Burn 0.22.1 did with 281 module records, right
and wrong. A case gives the module before, the record, and the module after or the failure. What
ends otherwise here stands in `DIFFERENT`, and with its reason in the docs.
"""

import json
import re
from pathlib import Path

import cbor2
import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn import init
from bpk_lite.pack import DType, FormatError, QuantScheme, ReadError, RecordError, Tensor
from bpk_lite.records import ModuleRecord
from tests.nn.zoo import RECORDS, Fields, live_bytes
from tests.support import raw_pack

CASES = {
    case["case"]: case
    for case in json.loads((RECORDS / "errors.json").read_text(encoding="utf-8"))["cases"]
    if case["area"] == "module"
}
PARTIAL, UNUSED = {"allow_partial": True}, {"allow_unused": True}
UNCHECKED, CAST = {"validate": False}, {"dtype_policy": "module"}
OPTIONS = {
    "one missing, partial allowed: the other keeps value and id": PARTIAL,
    "empty record, partial allowed": PARTIAL,
    "two unused, allowed": UNUSED,
    "unused, only partial allowed": PARTIAL,
    "wrong shape, not validated: kept, rest loaded": UNCHECKED,
    "the same, not validated": UNCHECKED,
    "the same, not validated, partial": UNCHECKED | PARTIAL,
    "the same, everything allowed": UNCHECKED | PARTIAL | UNUSED,
    "an optimizer record, everything allowed": UNCHECKED | PARTIAL | UNUSED,
    "plain record into lora module, partial: base loaded, adapter kept": PARTIAL,
    "only the adapter, partial": PARTIAL,
}
# cases without a module and a record; the tests at the end are about them
SPECIAL = {
    "a file that does not exist",
    "a hit does not initialise the old param",
    "with cast-to-module it does",
    "gradient requirement follows the module",
    "quantizing a batch norm: running states too",
}
NOT_INT = (
    "F64", "F64 without NaN", "F64 halfway", "F32", "F32 payload NaN", "F32 small integers", "F16",
    "BF16", "Flex32", "Bool Native", "Bool Native with other bytes", "Bool U8",
    "Bool U8 with other bytes", "Bool U32", "Bool U32 with other words",
)  # fmt: skip
# what ends otherwise here, and how
DIFFERENT = {
    **{f"dtype: {dtype} into int I32, from record": "refused" for dtype in NOT_INT},
    "Col, target already used": "loaded",
    "Col, target filled through consume": "loaded",
    "Col, used target, record in Row form: accepted and transposed": "refused",
    "quantized, packed in u32, into float": "as it is",
    "with cast-to-module it does": "not materialised",
    "quantizing a batch norm: running states too": "not offered",
}
LOADED = [name for name in CASES if name not in SPECIAL]
AS_BURN = [name for name in LOADED if name not in DIFFERENT]


def dtype_of(text):
    """Return the dtype that Burn's debug text names."""
    if not text.startswith("QFloat"):
        return DType.parse("Bool" if text == "Bool(Native)" else text)
    value, store = re.search(r"value: (\w+), store: (\w+)", text).groups()
    tensor = re.search(r"tensor: Some\((\w+)\)", text)
    return DType.quantized(QuantScheme(value, store, tensor=tensor and tensor[1]))


def shaped(case):
    """Build the module that a case loads into, before it holds anything."""
    name, paths = case["case"], {p["path"]: p for p in case.get("before", [])}
    if "running_mean" in paths:
        return nn.BatchNorm(2)
    if "p" in paths:
        p = paths["p"]
        dtype = dtype_of(p["dtype"])
        return Fields(p=nn.Param(tuple(p["shape"]), init.Zeros(), dtype=dtype))
    square = name.startswith("Col square")
    sizes = (2, 2) if square else paths["weight"]["shape"] if paths else (2, 3)
    layout = "Col" if name.startswith("Col") else "Row"
    module = nn.Linear(*sizes, layout=layout, bias=not square and (not paths or "bias" in paths))
    return nn.lora(module, rank=2, alpha=4) if "weight.lora.a" in paths else module


def before(case):
    """Build the module of a case with its values and ids, and use the params as it did."""
    module = shaped(case)
    for described in case.get("before", []):
        param = module.named_params()[described["path"]]
        dtype, data = dtype_of(described["dtype"]), bytes.fromhex(described["hex"])
        if dtype.kind == "quantized":
            param.load(Tensor.from_bytes("", dtype, param.shape, data))
        else:
            param.value = np.frombuffer(data, dtype.numpy).reshape(described["shape"])
        param.id = described["id"]
    return module


def record_bytes(described):
    """Return the file of a case's record."""
    if "hex" in described:
        return bytes.fromhex(described["hex"])
    tensors, data = {}, b""
    for tensor in described["tensors"]:
        data += bytes(-len(data) % 256)
        part = bytes.fromhex(tensor["hex"])
        entry = {"dtype": tensor["dtype"], "shape": tensor["shape"]}
        entry["data_offsets"] = [len(data), len(data) + len(part)]
        if tensor.get("param_id") is not None:
            entry["param_id"] = tensor["param_id"]
        tensors[tensor["name"]], data = entry, data + part
    top = {"tensors": tensors}
    top |= {name: described[name] for name in ("metadata", "scalars") if name in described}
    return raw_pack(cbor2.dumps(top), data)


def load(case, module):
    """Do what a case does to `module`."""
    name = case["case"]
    options = OPTIONS.get(name, CAST if name.endswith("cast to module") else {})
    record = ModuleRecord.from_bytes(record_bytes(case["input"]))
    return module.load_record(record, **options)


def state(module):
    """Return what can be seen of a module: paths, dtypes, shapes, ids and bytes."""
    return [
        (path, param.dtype, param.shape, param.id, raw(param))
        for path, param in module.named_params().items()
    ]


def raw(param):
    """Return the bytes as Burn's ``hex`` has them; booleans as they will be saved."""
    return param.tensor("").to_bytes() if param.kind == "bool" else live_bytes(param)


def described(case, found):
    """Return `found` in the form of `state`, as the case's ``after`` has it."""
    return [
        (
            p["path"],
            dtype_of(p["dtype"]),
            tuple(p["shape"]),
            now[3] if p["id"] == "fresh" else p["id"],
            bytes.fromhex(p["hex"]),
        )
        for p, now in zip(case["after"], found, strict=True)
    ]


def test_all_cases_are_here():
    """There are 281 cases, 231 of them about dtypes; every name in a table here is a case."""
    assert 281 == len(CASES)
    assert 231 == sum(name.startswith("dtype:") for name in CASES)
    assert set() == (OPTIONS.keys() | SPECIAL | DIFFERENT.keys()) - CASES.keys()


@pytest.mark.parametrize("name", [n for n in AS_BURN if CASES[n]["outcome"] == "ok"])
def test_what_burn_loads_is_loaded(name):
    """Dtypes, shapes, ids and bytes after loading are Burn's (R25 to R35, R90)."""
    case = CASES[name]
    module = before(case)
    own = [param.id for param in module.named_params().values()]
    load(case, module)
    found = state(module)
    assert described(case, found) == found
    fresh = [place for place, p in enumerate(case["after"]) if p["id"] == "fresh"]
    assert not {own[place] for place in fresh} & {found[place][3] for place in fresh}


@pytest.mark.parametrize("name", [n for n in AS_BURN if CASES[n]["outcome"] != "ok"])
def test_what_burn_refuses_is_refused(name):
    """What is an error or a panic in Burn is an error here, and changes nothing (R28 to R33)."""
    case = CASES[name]
    module = before(case)
    own = state(module)
    io = case.get("error", {}).get("kind") == "Io"
    with pytest.raises(FormatError if io else RecordError) as caught:
        load(case, module)
    assert own == state(module)
    error = caught.value
    if case["outcome"] == "panic":
        assert tuple(p["path"] for p in case["before"]) == error.mismatched
    elif not io:
        names = tuple(text.split(": ")[0] for text in case["error"]["names"])
        assert names in (error.missing, error.unused, error.mismatched)
        assert all(name in str(error) for name in names)


@pytest.mark.parametrize("name", [f"dtype: {d} into int I32, from record" for d in NOT_INT])
def test_int_params_refuse_other_kinds(name):
    """An integer param takes no float or boolean record unless it is cast; Burn looks away (R28)."""
    module = before(CASES[name])
    own = state(module)
    with pytest.raises(RecordError, match="expected int") as caught:
        load(CASES[name], module)
    assert ("p",) == caught.value.mismatched
    assert own == state(module)


@pytest.mark.parametrize("name", ["Col, target already used", "Col, target filled through consume"])
def test_used_col_linear_takes_its_own_record(name):
    """A ``Col`` linear that was used loads its own record; Burn compares the live shape (R27)."""
    module, fresh = before(CASES[name]), CASES["Col, fresh (lazy) target"]
    module(np.ones((1, 2), "f4"))
    load(CASES[name], module)
    assert described(fresh, state(module)) == state(module)


def test_used_col_linear_refuses_row_form():
    """A record in row form is refused; Burn ends with a transposed weight (R27)."""
    case = CASES["Col, used target, record in Row form: accepted and transposed"]
    module = before(case)
    with pytest.raises(RecordError, match="transpose") as caught:
        load(case, module)
    assert ("weight",) == caught.value.mismatched


def test_packed_quantized_data_keep_their_store():
    """Data packed in u32 stay packed, so the record saves as it was; flex unpacks them (R93)."""
    case = CASES["quantized, packed in u32, into float"]
    module = before(case)
    load(case, module)
    assert ModuleRecord.from_bytes(record_bytes(case["input"])) == module.into_record()


class Counting(init.Initializer):
    """Zeros, counted."""

    drawn = 0

    def fill(self, shape, fan_in, fan_out, random):
        self.drawn += 1
        return np.zeros(shape)


@pytest.mark.parametrize("policy", ["record", "module"])
def test_loading_draws_no_initial_value(policy):
    """A hit does not materialise the old value, whichever the policy; Burn does when it casts (R26)."""
    drawn = Counting()
    module = nn.Linear(2, 2, bias=False, initializer=drawn)
    tensor = Tensor.from_array("weight", np.ones((2, 2), "<f8"))
    module.load_record(ModuleRecord([tensor]), dtype_policy=policy)
    assert 4 == module.weight.value.sum()
    assert 0 == drawn.drawn


def test_gradient_requirement_follows_the_module():
    """A frozen param stays frozen and another one does not freeze (R26)."""
    expected = CASES["gradient requirement follows the module"]
    frozen, plain = nn.Linear(2, 2).no_grad(), nn.Linear(2, 2)
    record = nn.Linear(2, 2).into_record()
    for module in (frozen, plain):
        module.load_record(record)
    found = {"frozen": frozen.weight.require_grad, "plain": plain.weight.require_grad}
    assert {name: expected[name] for name in found} == found


@pytest.mark.desktop
def test_absent_file_is_named(tmp_path):
    """A file that does not exist is named with the extension that was looked for (R33)."""
    with pytest.raises(ReadError, match=r"no-such-file\.bpk"):
        nn.Linear(2, 2).load(tmp_path / "no-such-file")


@pytest.mark.desktop
def test_the_docs_list_the_differences():
    """Every deliberate difference stands in the docs with its reason, and nothing else does."""
    docs = Path(__file__).parents[2] / "docs"
    text = "".join(path.read_text("utf-8") for path in sorted(docs.glob("differences*.md")))
    rows = re.findall(r"^\| (`.*?`) \|.*\|.*\| *\S.* \|$", text, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert DIFFERENT.keys() == listed & CASES.keys()
