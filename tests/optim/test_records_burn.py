"""The recorded cases of loading optimizer records, and the table of deliberate differences."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bpk_lite import nn, optim
from bpk_lite.nn import ParamGroup
from bpk_lite.pack import RecordError
from bpk_lite.records import OptimizerRecord
from tests.optim.burn import (
    CASES,
    FOLDER,
    RUNS,
    Recorded,
    array,
    described,
    expected,
    gradients,
    optimizer,
    record,
)

LOADS = [c for c in CASES if c["area"] == "optimizer" and "input" in c]
DIFFERENCES = Path(__file__).parent.parent.parent / "docs" / "differences.md"


def differing() -> set[str]:
    """Return the cases that docs/differences.md lists as deliberate, of optimizers."""
    section = DIFFERENCES.read_text().partition("## Optimizer records")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE))


@pytest.mark.parametrize("case", LOADS, ids=lambda c: c["case"])
def test_records_load_as_in_burn_or_as_the_table_says(case):
    """State after loading, and after one more step, is Burn's, unless the docs say otherwise.

    What is required and missing, or no number of the right kind, leaves a param without state; what
    is optional is absent (R41, R54 to R56).
    """
    run = RUNS[case["config"]]
    made = optimizer(case["config"], run["initial"])
    given = record(case["input"])
    report = made.load_record(given, allow_partial=True)
    same = case["load"]["outcome"] == "ok" and described(made.into_record()) == expected(
        case["state"]
    )
    if same and case.get("step"):
        step = run["steps"][0]
        try:
            made.step(gradients(run, step), lr=step["lr"])
        except ValueError:
            same = case["step"]["outcome"] == "panic"
        else:
            same = case["step"]["outcome"] == "ok" and described(made.into_record()) == expected(
                case["step"]["state"]
            )
    assert (case["case"] not in differing()) == same
    if report.problems:
        strict = optimizer(case["config"], run["initial"])
        with pytest.raises(RecordError, match="nothing was loaded"):
            strict.load_record(given)
        assert {} == strict.into_record().tensors


def test_the_table_names_only_recorded_cases():
    """A row of the docs that is no case is a mistake."""
    assert differing() <= {c["case"] for c in CASES}


CASE = {c["case"]: c for c in CASES if c["area"] == "optimizer"}


def adam():
    run = RUNS["adam"]
    made = optimizer("adam", run["initial"])
    made.step(gradients(run, run["steps"][0]), lr=run["steps"][0]["lr"])
    return made


def test_loading_an_empty_record_clears_the_state():
    """The record replaces all there is (R54.5)."""
    case, made = CASE["loading an empty record clears the state"], adam()
    assert case["tensors_before"] == len(made.into_record())
    made.load_record(OptimizerRecord())
    assert case["tensors_after"] == len(made.into_record())


def test_adding_a_group_drops_the_state_of_its_params():
    """The other params keep theirs (R103)."""
    made = adam().add_group(ParamGroup.path("bias"), optim.SgdConfig())
    wanted = CASE["adding a group drops the state of its params"]["state"]
    assert expected(wanted) == described(made.into_record())


def test_muon_refuses_a_vector_and_changes_nothing():
    """Where Burn panics, the error names the shape, and the other param is not stepped either."""
    run = RUNS["adam"]
    made = optim.ModuleOptimizer(Recorded(run["initial"]), optim.MuonConfig())
    before = made.module.state()
    with pytest.raises(ValueError, match=r"two dimensions, not \[3\]"):
        made.step(gradients(run, run["steps"][0]), lr=0.1)
    assert all(value is made.module.state()[path] for path, value in before.items())


def test_shared_params_are_stepped_once_and_seen_everywhere():
    """One array under two paths; Burn lets the second copy drift apart (R101)."""
    case = CASE["shared params: the second occurrence is not stepped"]

    class Net(nn.Module):
        def __init__(self):
            left = {row["path"]: row for row in case["before"] if row["path"].startswith("left")}
            self.left = Recorded([{**row, "path": path[5:]} for path, row in left.items()])
            self.right = self.left

    net = Net()
    run = RUNS["adam"]
    grads = gradients(run, run["steps"][0])
    made = optim.Adam(net, lr=run["steps"][0]["lr"])
    made.step({f"left.{path}": grad for path, grad in grads.items()})
    wanted, found = expected(case["state"]), described(made.into_record())
    assert (wanted["metadata"], wanted["scalars"]) == (found["metadata"], found["scalars"])
    assert wanted["tensors"].keys() == found["tensors"].keys()
    before = {row["path"]: array(row) for row in case["before"]}
    for path in ("weight", "bias"):
        left, right = (net.named_params()[f"{side}.{path}"].value for side in ("left", "right"))
        assert left is right
        assert not np.array_equal(before[f"left.{path}"], left)


def test_a_param_without_gradient_has_no_state():
    """Only params that were stepped appear (R47)."""
    run = RUNS["adam"]
    made = optimizer("adam", run["initial"])
    grads = gradients(run, run["steps"][0])
    made.step({"bias": grads["bias"]}, lr=run["steps"][0]["lr"])
    wanted = expected(CASE["a param without gradient has no state"]["state"])
    found = described(made.into_record())
    assert (wanted["metadata"], wanted["scalars"]) == (found["metadata"], found["scalars"])
    assert wanted["tensors"].keys() == found["tensors"].keys()


def test_stale_ids_are_kept_and_reported():
    """State of params that the module does not have is kept, saved again, and named (bug G5)."""
    run = RUNS["adam"]
    made = optimizer("adam", [{**row, "id": 5} if row["path"] == "bias" else row
                              for row in run["initial"]])  # fmt: skip
    report = made.load_record(OptimizerRecord.load(FOLDER / "optim_adam_1.bpk"))
    assert (9505838338724798577,) == report.stale
    assert 4 == len(made.into_record())


@pytest.mark.parametrize(
    ("grads", "error", "words"),
    [
        ({"none": np.zeros(3, "f4")}, KeyError, "none"),
        ({"bias": np.zeros(2, "f4")}, ValueError, r"'bias' is float32 \[2\], expected floats of \[3\]"),
        ({"bias": np.zeros(3, "i4")}, ValueError, "expected floats"),
    ],
)  # fmt: skip
def test_wrong_gradients_are_refused_and_nothing_changes(grads, error, words):
    """Path, shape and dtype are named."""
    made = optimizer("adam", RUNS["adam"]["initial"])
    with pytest.raises(error, match=words):
        made.step(grads, lr=0.1)
    assert 0 == len(made.into_record().scalars)


def test_frozen_params_and_running_states_take_no_gradient():
    """A gradient for one is a mistake that is named (R47)."""
    net = Recorded(RUNS["adam"]["initial"])
    net.bias.require_grad = False
    with pytest.raises(ValueError, match="'bias', which is frozen"):
        optim.Sgd(net, lr=0.1).step({"bias": np.zeros(3, "f4")})


def test_a_step_needs_a_learning_rate():
    """None given to the optimizer or the step is an error."""
    with pytest.raises(ValueError, match="no learning rate"):
        optimizer("adam", RUNS["adam"]["initial"]).step({})


def test_the_choice_of_optimizer_sticks_to_the_state():
    """A param that has state keeps its configuration (R104); group rates decide by path (R106)."""
    run = RUNS["adam"]
    made = adam()
    made.add_group(ParamGroup.path("bias"), optim.LionConfig())
    grads = gradients(run, run["steps"][1])
    rates = optim.lr.Rates(0.1, ((ParamGroup.path("bias"), 0.0),))
    before = made.module.state()["bias"]
    made.step(grads, lr=rates)
    assert before.tobytes() == made.module.state()["bias"].tobytes()
    assert {"momentum"} == {
        name.split(".", 1)[1]
        for name in made.into_record().tensors
        if name.startswith("9505838338724798577")
    }


CHECKS = {
    "adafactor epsilon_1 0": {"epsilon_1": 0},
    "adafactor epsilon_2 NaN": {"epsilon_2": float("nan")},
    "adafactor clip_threshold 0": {"clip_threshold": 0},
    "adafactor decay_rate 0": {"decay_rate": 0},
    "adafactor weight_decay negative": {"weight_decay": -0.1},
}
ODD = {
    "adam beta_1 2": lambda: optim.AdamConfig(beta_1=2),
    "adam epsilon negative": lambda: optim.AdamConfig(epsilon=-1),
    "rmsprop alpha 2": lambda: optim.RmsPropConfig(alpha=2),
    "rmsprop momentum negative": lambda: optim.RmsPropConfig(momentum=-1),
    "lion beta_1 2": lambda: optim.LionConfig(beta_1=2),
    "muon ns_steps 0": lambda: optim.MuonConfig(steps=0),
}


def test_configurations_are_checked_as_burn_does():
    """Adafactor alone checks its values; the others take anything (R99)."""
    cases = {c["case"] for c in CASES if c["area"] == "config" and "config" not in c}
    assert cases == set(CHECKS) | set(ODD)
    for values in CHECKS.values():
        with pytest.raises(ValueError, match="Adafactor's"):
            optim.AdafactorConfig(**values)
    for build in ODD.values():
        build()
