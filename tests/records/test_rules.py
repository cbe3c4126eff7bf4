"""What holds across the three records: wrong files, wrong targets, metadata, order of ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bpk_lite import nn, optim
from bpk_lite.pack import DType, QuantScheme, Reader, RecordError, Tensor, ValidationError, Writer
from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord
from tests.support import descriptor, pack_of

BURN = Path(__file__).parent.parent / "fixtures" / "burn"
EVERYTHING = {"allow_partial": True, "allow_unused": True, "validate": False}
RECORDS = [ModuleRecord, OptimizerRecord, LrSchedulerRecord]


def state(net):
    return {
        path: (param.id, param.dtype, param.value.tolist())
        for path, param in net.named_params().items()
    }


def adam(net, **config):
    """Return an Adam that has stepped every param of `net` once."""
    made = optim.Adam(net, lr=0.1, **config)
    made.step({path: np.ones(param.shape, "f4") for path, param in net.named_params().items()})
    return made


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize("end", [8, 11, 13, 16])
def test_a_length_that_contradicts_the_shape_is_refused_at_open(kind, end):
    """Three floats are 12 bytes; the fault is the file's, not the module's (R5, R37)."""
    blob = pack_of({"weight": descriptor(shape=(3,), offsets=(0, end))}, bytes(16))
    with pytest.raises(ValidationError, match=f"'weight' declares {end} bytes"):
        kind.from_bytes(blob)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_quantized_length_is_not_checked_at_open(size):
    """Quantized tensors are exempt, whatever their shape (R37)."""
    tensor = Tensor.from_bytes(
        "weight", DType.quantized(QuantScheme("Q8S", "Native")), (3,), bytes(size)
    )
    blob = Writer([tensor]).plan().into_bytes()
    assert size == ModuleRecord.from_bytes(blob)["weight"].nbytes


@pytest.mark.parametrize("file", ["optim_adam_1", "optim_sgd_1", "optim_lbfgs_1", "sched_linear_5"])
def test_the_record_of_something_else_misses_every_param(file):
    """A module refuses another kind of record; with everything allowed it stays as it is (R38)."""
    net = nn.Linear(2, 3)
    before = state(net)
    record = ModuleRecord.from_bytes((BURN / "records" / f"{file}.bpk").read_bytes())
    with pytest.raises(RecordError) as caught:
        net.load_record(record)
    assert ("weight", "bias") == caught.value.missing
    assert tuple(sorted(record.tensors)) == caught.value.unused
    report = net.load_record(record, **EVERYTHING)
    assert ((), ("weight", "bias")) == (report.loaded, report.missing)
    assert before == state(net)


def test_only_optimizers_write_metadata():
    """Id to path for each param with state; no other record has an entry (R46, R85)."""
    net = nn.Linear(2, 3)
    expected = {str(net.weight.id): "weight", str(net.bias.id): "bias"}
    assert expected == dict(adam(net).into_record().metadata)
    lbfgs = optim.Lbfgs(net, max_iter=1)
    grads = {"weight": np.ones((2, 3), "f4"), "bias": np.ones(3, "f4")}
    lbfgs.step(lambda _: (1.0, grads))
    schedule = optim.lr.Composed([optim.lr.Linear(0.5, 0.1, 8), optim.lr.Noam(1)])
    for record in (net.into_record(), lbfgs.into_record(), schedule.into_record()):
        assert {} == dict(record.metadata)
        assert {} == dict(type(record).from_bytes(record.into_bytes()).metadata)


def test_a_file_of_burns_store_is_a_module_record():
    """Same paths and ids, no scalars; its three entries of metadata are ignored (R85, R86)."""
    pack = Reader.from_bytes((BURN / "store" / "files" / "embedding.bpk").read_bytes())
    assert {"format": "burnpack", "producer": "burn", "version": "0.22.1"} == dict(pack.metadata)
    assert {} == dict(pack.scalars)
    fields = {
        name: nn.Param(tensor.shape, nn.init.Zeros(), dtype=tensor.dtype)
        for name, tensor in pack.items()
        if "." not in name
    }
    root = {**fields, "tok": nn.Embedding(7, 4)}
    report = nn.load_tensors(root, ModuleRecord.from_pack(pack).tensors)
    assert {"ids", "mask", "pos", "tok.weight"} == set(report.loaded)
    record = nn.into_record(root)
    for name, tensor in pack.items():
        assert (tensor.param_id, tensor.to_bytes()) == (
            record[name].param_id,
            record[name].to_bytes(),
        )
    assert {} == dict(record.metadata)


def test_a_file_of_our_store_is_a_module_record():
    """The store writes what a record of the module holds, and three entries more (R86)."""
    from bpk_lite.store import BurnpackStore

    net, other = nn.Linear(2, 3), nn.Linear(2, 3)
    pack = Reader.from_bytes(BurnpackStore().collect_from(net))
    assert {"format", "producer", "version"} == set(pack.metadata)
    assert {} == dict(pack.scalars)
    other.load_record(ModuleRecord.from_pack(pack))
    assert net.into_record() == other.into_record()


def test_params_are_in_the_order_of_their_numbers():
    """Not of their decimal text, in which 10 comes before 9, nor of base 32 (R48, R88)."""
    numbers = [9, 10, 255, 256, 1 << 63]
    params = [nn.Param.of(np.ones(1, "f4"), param_id=number) for number in reversed(numbers)]
    texts = [str(param.id) for param in reversed(params)]
    assert texts != sorted(texts)
    assert sorted(map(str, numbers)) != list(map(str, numbers))

    class Net(nn.Module):
        def __init__(self):
            self.params = params

    record = adam(Net()).into_record()
    assert [
        f"{number}.momentum.moment_{moment}" for number in numbers for moment in (1, 2)
    ] == list(record.tensors)


def test_a_state_of_another_shape_is_refused_where_it_is_noticed():
    """At loading, or at the step if the param came later; Burn panics or broadcasts (R107)."""
    small, net = nn.Linear(1, 3, bias=False), nn.Linear(2, 3, bias=False)
    record = adam(small).into_record()
    early = optim.Adam(net, lr=0.1)
    assert (small.weight.id,) == early.load_record(record).stale
    net.weight.id = small.weight.id
    before = state(net)
    with pytest.raises(ValueError, match=r"moment_1' of 'weight' has shape \[1, 3\].*\[2, 3\]"):
        early.step({"weight": np.ones((2, 3), "f4")})
    with pytest.raises(RecordError, match=r"moment_1 has shape \[1, 3\], expected \[2, 3\]"):
        optim.Adam(net, lr=0.1).load_record(record)
    assert before == state(net)


def test_a_path_is_the_records_until_the_next_step():
    """A loaded path is written again as it was; a step replaces it, and adds an absent one (R108)."""
    net = nn.Linear(2, 3, bias=False)
    record = adam(net).into_record()
    key, grads = str(net.weight.id), {"weight": np.ones((2, 3), "f4")}
    for metadata in ({key: "elsewhere"}, {}):
        made = optim.Adam(net, lr=0.1)
        made.load_record(
            OptimizerRecord(record.tensors.values(), scalars=record.scalars, metadata=metadata)
        )
        assert metadata == dict(made.into_record().metadata)
        made.step(grads)
        assert {key: "weight"} == dict(made.into_record().metadata)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Bool", 6),
        ("I8", 6),
        (DType.quantized(QuantScheme("Q8S", "Native")), 10),
        (DType.quantized(QuantScheme("Q8S", "PackedU32")), 12),
    ],
    ids=str,
)
def test_a_moment_that_is_not_of_floats_starts_afresh(dtype, size):
    """Booleans that are none and packed values too: reported, or an error of the record (R54)."""
    net = nn.Linear(2, 3, bias=False)
    made = adam(net)
    record = made.into_record()
    name = f"{net.weight.id}.momentum.moment_1"
    odd = Tensor.from_bytes(name, dtype, (2, 3), bytes([7] * size), param_id=net.weight.id)
    given = OptimizerRecord(
        {**record.tensors, name: odd}.values(), scalars=record.scalars, metadata=record.metadata
    )
    with pytest.raises(RecordError, match="expected floats"):
        made.load_record(given)
    assert record == made.into_record()
    assert () == made.load_record(given, allow_partial=True).restored
    made.step({"weight": np.ones((2, 3), "f4")})
