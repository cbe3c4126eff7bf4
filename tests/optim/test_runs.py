"""Every recorded run of Burn's optimizers, reproduced (R43 to R53, R94 to R106)."""

from __future__ import annotations

import numpy as np
import pytest

from bpk_lite.pack import DType
from bpk_lite.records import OptimizerRecord
from tests.optim.burn import CONFIGS, FOLDER, MANIFEST, RUNS, array, gradients, optimizer

# the order of a sum differs: at most 2 units in the last place (records.md)
ULPS = {"muon": 2, "muon_tall": 2, "muon_match": 2, "adafactor_conv": 2, "groups": 2}
HAS_BF16 = DType.BF16.numpy.kind != "u"  # Pyodide has no ml_dtypes
NAMES = [name for name in CONFIGS if HAS_BF16 or name != "adam_bf16"]


def ulps(one, other):
    ints = {2: "i2", 4: "i4", 8: "i8"}[one.itemsize]
    distance = np.ascontiguousarray(one).view(ints).astype("i8") - other.view(ints).astype("i8")
    return int(np.abs(distance).max())


def run_steps(made, run, steps, slack=0):
    """Take recorded steps and compare the params after each."""
    for step in steps:
        made.step(gradients(run, step), lr=step["lr"])
        for row in step["params"]:
            found, wanted = made.module.state()[row["path"]], array(row)
            assert wanted.dtype == found.dtype
            allowed = ULPS[run["name"]] + slack if run["name"] in ULPS else 0
            assert allowed >= ulps(found, wanted), (step["step"], row["path"])


@pytest.mark.parametrize("name", NAMES)
def test_a_run_gives_burns_params_bit_for_bit(name):
    """Three steps from the recorded params and gradients end where Burn's end."""
    run = RUNS[name]
    run_steps(optimizer(name, run["initial"]), run, run["steps"])


@pytest.mark.parametrize("name", NAMES)
def test_a_run_resumes_from_burns_record(name):
    """Burn's record after step 1 continues to Burn's params after steps 2 and 3, in its dtype."""
    run = RUNS[name]
    made = optimizer(name, run["steps"][0]["params"])
    report = made.load_record(OptimizerRecord.load(FOLDER / f"optim_{name}_1.bpk"))
    assert ((), ()) == (report.problems, report.stale)
    run_steps(made, run, run["steps"][1:], slack=2)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ULPS])
def test_the_record_of_a_run_is_burns_file(name):
    """After one and three steps the record is the recorded file, byte for byte (R43 to R48).

    So the leaves have Burn's names and order (R39), and plain SGD has none (R40).
    """
    run = RUNS[name]
    made = optimizer(name, run["initial"])
    for step in run["steps"]:
        made.step(gradients(run, step), lr=step["lr"])
        path = FOLDER / f"optim_{name}_{step['step']}.bpk"
        if path.exists():
            assert path.read_bytes() == made.into_record().into_bytes()


FILES = [file["file"] for row in MANIFEST["optimizers"] for file in row["files"]]


@pytest.mark.parametrize("file", FILES)
def test_a_record_that_is_loaded_and_saved_is_the_same_file(file):
    """Whatever the order of its data; the other order of Adam's among them (pitfalls, R48)."""
    blob = (FOLDER / file).read_bytes()
    assert blob == OptimizerRecord.from_bytes(blob).into_bytes()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "groups"])
def test_an_optimizer_that_loads_a_record_writes_the_same_file(name):
    """State, ranks, paths and dtypes survive the optimizer itself (R42 is where Burn loses F16)."""
    made = optimizer(name, RUNS[name]["initial"])
    path = FOLDER / f"optim_{name}_3.bpk"
    made.load_record(OptimizerRecord.load(path))
    assert path.read_bytes() == made.into_record().into_bytes()


def test_records_of_either_order_are_equal():
    """Content is compared, not the order of the data (R48)."""
    one = OptimizerRecord.load(FOLDER / "optim_adam_1.bpk")
    other = OptimizerRecord.load(FOLDER / "optim_adam_other_order_1.bpk")
    assert one == other
    assert one.into_bytes() != other.into_bytes()
    assert one != OptimizerRecord.load(FOLDER / "optim_adam_3.bpk")
