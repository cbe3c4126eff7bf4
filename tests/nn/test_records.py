"""Real Burn's module records load into the same modules in Python and are saved as the same files."""

import hashlib

import numpy as np
import pytest

from bpk_lite import nn
from bpk_lite.nn._walk import named_params
from bpk_lite.pack import DType, RecordError, Tensor
from bpk_lite.records import ModuleRecord
from tests.nn.zoo import GROUPS, MODULES, RECORDS, ZOO, Fields, live_bytes

WHOLE = [module for module in MODULES if "live" in module]
UNQUANTIZED = [module for module in WHOLE if not module["zoo"].startswith("quant_")]
GROUPED = [module for module in MODULES if "group" in module]


def with_own_ids(described):
    """Build a zoo module whose running states have the ids of the manifest (R34)."""
    root = ZOO[described["zoo"]]()
    for live, param in zip(described["live"], named_params(root).values(), strict=True):
        if param.running:
            param.id = live["id"]
    return root


def read(described):
    return (RECORDS / described["file"]).read_bytes()


def test_the_zoo_is_complete():
    """All 36 module records of the manifest are loaded here: 32 modules and 4 groups."""
    assert (32, 4) == (len(WHOLE), len(GROUPED))
    assert set(ZOO) == {module["zoo"] for module in WHOLE}
    assert set(GROUPS) == {module["group"] for module in GROUPED}


@pytest.mark.parametrize("described", WHOLE, ids=lambda d: d["zoo"])
def test_loaded_values_are_burns(described):
    """Paths, kinds, dtypes, shapes, ids and live bytes are those that Burn had (R11 to R20, R91)."""
    root = with_own_ids(described)
    report = nn.load_tensors(root, ModuleRecord.from_bytes(read(described)).tensors)
    assert ((), ()) == (report.missing, report.unused)
    assert tuple(live["path"] for live in described["live"]) == report.loaded
    for live, param in zip(described["live"], named_params(root).values(), strict=True):
        assert (live["kind"], tuple(live["shape"]), live["id"]) == (
            param.kind,
            param.shape,
            param.id,
        )
        assert live["dtype"].startswith(str(param.dtype)[:6])
        assert live["sha256"] == hashlib.sha256(live_bytes(param)).hexdigest()


@pytest.mark.parametrize("used", [False, True], ids=["unread", "read"])
@pytest.mark.parametrize("described", WHOLE, ids=lambda d: d["zoo"])
def test_saved_file_is_burns(described, used):
    """A record loaded into a module and taken from it again is the same file (R13, R89)."""
    root = with_own_ids(described)
    nn.load_tensors(root, ModuleRecord.from_bytes(read(described)).tensors)
    if used:
        for param in named_params(root).values():
            assert param.shape == param.value.shape
    assert read(described) == nn.into_record(root).into_bytes()


@pytest.mark.parametrize("described", UNQUANTIZED, ids=lambda d: d["zoo"])
def test_held_arrays_are_saved_as_burns(described):
    """Values that were copied into fresh params give the same file too (R20): nothing relies on the loaded bytes."""
    loaded, root = with_own_ids(described), with_own_ids(described)
    nn.load_tensors(loaded, ModuleRecord.from_bytes(read(described)).tensors)
    for param, other in zip(
        named_params(root).values(), named_params(loaded).values(), strict=True
    ):
        param.value, param.id = other.value.copy(), other.id
    assert read(described) == nn.into_record(root).into_bytes()


@pytest.mark.parametrize("described", GROUPED, ids=lambda d: d["file"])
def test_group_record_is_burns(described):
    """The record of a group stores only matching params, and is the file that Burn wrote (R21)."""
    zoo = "lora" if "Lora" in described["about"] else "mlp"
    root = ZOO[zoo]()
    root.load_record(ModuleRecord.from_bytes((RECORDS / f"module_{zoo}.bpk").read_bytes()))
    record = root.into_record_group(GROUPS[described["group"]])
    assert read(described) == record.into_bytes()
    missing = root.load_record(record, allow_partial=True).missing
    assert len(root.named_params()) == len(record) + len(missing)
    if missing:
        with pytest.raises(RecordError, match="allow_partial"):
            root.load_record(record)


def test_group_record_reads_nothing_else():
    """Params outside the group are not even drawn or read (R21)."""
    net = nn.Linear(2, 2)
    record = net.into_record_group(nn.ParamGroup.path("bias"))
    record.into_bytes()
    assert not net.weight.materialised
    assert net.bias.materialised


def test_record_copies_nothing():
    """A record refers to the params' arrays, so taking one costs nothing (R11)."""
    net = nn.Linear(3, 2)
    held = net.weight.value
    record = net.into_record()
    assert np.shares_memory(held, record["weight"].numpy())
    assert not net.bias.materialised


def test_module_without_params_is_the_empty_container():
    """A module without params gives 256 bytes (R89)."""
    assert 256 == len(nn.Relu().into_record().into_bytes())


def test_record_has_no_scalars_and_no_metadata():
    """A module record stores tensors only, each with its id (R11)."""
    record = nn.Linear(2, 2).into_record()
    assert ({}, {}) == (dict(record.scalars), dict(record.metadata))
    assert all(tensor.param_id is not None for tensor in record.tensors.values())


def test_other_variants_do_not_fit():
    """A record of the same enum with other variants misses paths and leaves tensors unused (R15)."""
    net = ZOO["enum_net"]()
    record = ModuleRecord.from_bytes((RECORDS / "module_enum_net_other.bpk").read_bytes())
    with pytest.raises(RecordError) as caught:
        net.load_record(record)
    assert ("first.Conv.weight", "first.Conv.bias") == caught.value.missing[:2]
    assert ("first.Dense.bias", "first.Dense.weight") == caught.value.unused[:2]


def test_error_has_all_three_lists():
    """One error carries what is missing, unused and mismatched, and survives pickling (R30)."""
    import pickle

    net = nn.Linear(2, 3)
    wrong = [Tensor.from_array(n, np.ones((3, 2), "<f4")) for n in ("weight", "wieght")]
    with pytest.raises(RecordError) as caught:
        net.load_record(ModuleRecord(wrong))
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(caught.value) == str(error)
    assert (("bias",), ("wieght",), ("weight",)) == (error.missing, error.unused, error.mismatched)
    assert ((), (), ()) == (
        RecordError("x").missing,
        RecordError().unused,
        RecordError().mismatched,
    )


def test_allowed_lists_are_not_in_the_error():
    """What was allowed is no finding."""
    wrong = ModuleRecord([Tensor.from_array("weight", np.ones(2, "<f4"))])
    with pytest.raises(RecordError) as caught:
        nn.Linear(2, 3).load_record(wrong, allow_partial=True)
    assert ((), ("weight",)) == (caught.value.missing, caught.value.mismatched)


def test_unvalidated_load_keeps_what_has_another_shape():
    """Without validation a tensor of another shape is skipped and reported, the rest is loaded (R31)."""
    net = nn.Linear(2, 3)
    own = net.weight.id
    record = ModuleRecord(
        [
            Tensor.from_array("weight", np.ones((3, 2), "<i8"), param_id=1),
            Tensor.from_array("bias", np.ones(3, "<f4"), param_id=2),
        ]
    )
    report = net.load_record(record, validate=False)
    assert (("bias",), ("weight",)) == (report.loaded, report.mismatched)
    assert (own, 2) == (net.weight.id, net.bias.id)


def test_unvalidated_load_refuses_other_kinds():
    """Not validating is about shapes: integers for a float param stay an error (R28, R31)."""
    record = ModuleRecord([Tensor.from_array("weight", np.ones((2, 3), "<i4"))])
    with pytest.raises(RecordError) as caught:
        nn.Linear(2, 3, bias=False).load_record(record, validate=False)
    assert ("weight",) == caught.value.mismatched


def test_cast_failure_changes_nothing():
    """An element that cannot be converted is named, and params before it keep their values (R28)."""
    net = Fields(
        a=nn.Param.of(np.zeros(2, "<f4"), param_id=1), b=nn.Param.of(np.zeros(2, "i1"), param_id=2)
    )
    record = ModuleRecord(
        [
            Tensor.from_array("a", np.ones(2, "<f8")),
            Tensor.from_array("b", np.array([1, np.nan])),
        ]
    )
    with pytest.raises(RecordError, match=r"b: F64 cannot .* I8: element \[1\] is nan"):
        net.load_record(record, dtype_policy="module")
    assert (1, 2, 0.0) == (net.a.id, net.b.id, net.a.value.sum())


def test_unknown_policy_is_refused():
    """There are two dtype policies (R24)."""
    with pytest.raises(ValueError, match='"record" or "module", not \'both\''):
        nn.Linear(1, 1).load_record(ModuleRecord(), dtype_policy="both")


def test_casting_load_reads_nothing_yet():
    """Where no element can be refused, converting waits until the value is used."""
    read = []

    def provide():
        read.append(1)
        return np.array([1.5, 2.5], "<f8")

    net = Fields(w=nn.Param((2,), nn.init.Zeros()))
    tensor = Tensor.deferred("w", DType.F64, (2,), provide, param_id=3)
    net.load_record(ModuleRecord([tensor]), dtype_policy="module")
    assert [] == read
    assert (DType.F32, [1.5, 2.5], 3) == (net.w.dtype, net.w.value.tolist(), net.w.id)
    assert np.array([1.5, 2.5], "<f4").tobytes() == net.into_record()["w"].to_bytes()


@pytest.mark.desktop
def test_module_saves_and_loads_a_file(tmp_path):
    """`save` and `load` are the record's, with the default options (R36)."""
    net, other = nn.Linear(2, 3), nn.Linear(2, 3)
    path = net.save(tmp_path / "net")
    assert str(tmp_path / "net.bpk") == path
    assert ("weight", "bias") == other.load(tmp_path / "net").loaded
    assert net.weight.value.tolist() == other.weight.value.tolist()
    with pytest.raises(RecordError):
        nn.Linear(3, 3).load(path)
