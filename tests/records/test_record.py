"""The records as values and files (R1 to R6, R11, R13, R35, R49, R69; R10's recorded texts)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bpk_lite.pack import ParamId, Reader, Scalar, Tensor
from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord

FOLDER = Path(__file__).parent.parent / "fixtures" / "burn" / "records"
FILES = sorted(FOLDER.glob("*.bpk"))
KINDS = {"module": ModuleRecord, "optim": OptimizerRecord, "sched": LrSchedulerRecord}


def test_all_recorded_files_are_here():
    """As many as real Burn made."""
    assert 159 == len(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_record_loaded_and_saved_is_the_same_file(path):
    """Byte for byte, whatever the order of its data (R13, R48)."""
    record = KINDS[path.stem.split("_")[0]].from_bytes(path.read_bytes())
    assert path.read_bytes() == record.into_bytes()


@pytest.mark.desktop
def test_files_follow_the_extension_rules_and_are_atomic(tmp_path):
    """Saving appends .bpk, loading finds it, and replacing the file does not touch a record (R3, R4)."""
    first = ModuleRecord([Tensor.from_array("w", np.ones(3, "f4"), param_id=5)])
    assert str(tmp_path / "net.bpk") == first.save(tmp_path / "net")
    loaded = ModuleRecord.load(tmp_path / "net")
    ModuleRecord([Tensor.from_array("w", np.zeros(3, "f4"), param_id=5)]).save(tmp_path / "net")
    assert [1, 1, 1] == loaded["w"].numpy().tolist()
    loaded.save(tmp_path / "net")
    assert first == ModuleRecord.load(tmp_path / "net")


def test_records_compare_by_content_and_kind():
    """Order does not matter; ids, dtypes, scalars and the kind do."""
    a, b = Tensor.from_array("a", np.ones(1), param_id=1), Tensor.from_array("b", np.ones(1))
    assert ModuleRecord([a, b]) == ModuleRecord([b, a])
    assert ModuleRecord([a]) != OptimizerRecord([a])
    assert ModuleRecord([a]) != ModuleRecord([a.replace(param_id=2)])
    assert ModuleRecord([a]) != ModuleRecord([Tensor.from_array("a", np.zeros(1), param_id=1)])
    assert LrSchedulerRecord() != LrSchedulerRecord(scalars={"x": Scalar("UInt", 1)})
    with pytest.raises(TypeError, match="unhashable"):
        hash(ModuleRecord())


def test_an_empty_record_is_a_record_of_256_bytes():
    """No tensors is a state of affairs, not a falsehood (R49, R69)."""
    assert 256 == len(LrSchedulerRecord().into_bytes())
    assert bool(OptimizerRecord())
    assert 0 == len(OptimizerRecord())


def test_loading_reads_no_tensor_data():
    """A record from bytes views the buffer (R6)."""
    blob = (FOLDER / "module_mlp.bpk").read_bytes()
    record = ModuleRecord.from_bytes(blob)
    for tensor in record.tensors.values():
        assert np.shares_memory(tensor.numpy(), np.frombuffer(blob, np.uint8))
    assert list(Reader.from_bytes(blob)) == sorted(record.tensors)


CASES = [
    case
    for case in json.loads((FOLDER / "errors.json").read_text())["cases"]
    if case["area"] == "param_id"
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_texts_of_ids_are_parsed_as_in_burn(case):
    """What Burn refuses or panics on is a ValueError; so are UUIDs, which it hashes (R10)."""
    text = json.loads(case["case"].removeprefix("parse "))
    if "id" in case and "-" not in text:
        assert int(case["id"]) == ParamId.parse(text)
    else:
        with pytest.raises(ValueError, match="is not a parameter id"):
            ParamId.parse(text)
