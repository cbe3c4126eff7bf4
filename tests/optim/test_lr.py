"""Schedulers against Burn's recorded rates and records (R62 to R70, R109, R110)."""

from __future__ import annotations

import struct

import pytest

from bpk_lite.optim import lr
from bpk_lite.pack import RecordError, Scalar
from bpk_lite.records import LrSchedulerRecord
from tests.optim.burn import CASES, FOLDER, SCHEDULERS, SCHEDULES, record, scalar


def bits(value):
    return struct.pack(">d", value).hex()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_twenty_rates_and_two_records_are_burns(name):
    """Every rate is the same 64 bits, and the records after 0 and 5 calls the same files."""
    row, scheduler = SCHEDULES[name], SCHEDULERS[name]()
    files = {file["after_step"]: (FOLDER / file["file"]).read_bytes() for file in row["files"]}
    for call, wanted in enumerate(row["lrs"]):
        if call in files:
            assert files[call] == scheduler.into_record().into_bytes()
        if name == "groups":
            rates = scheduler.rates()
            assert {path: rate["bits"] for path, rate in wanted.items()} == {
                path: bits(rates.of(0, path)) for path in wanted
            }
        else:
            assert wanted["bits"] == bits(scheduler.step())


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name != "groups"])
def test_a_scheduler_resumes_from_burns_record(name):
    """The record after five calls continues with the sixth rate."""
    row, scheduler = SCHEDULES[name], SCHEDULERS[name]()
    scheduler.load_record(LrSchedulerRecord.load(FOLDER / f"sched_{name}_5.bpk"))
    assert [rate["bits"] for rate in row["lrs"][5:]] == [bits(scheduler.step()) for _ in range(15)]


def by_config(text):
    name = next(name for name, row in SCHEDULES.items() if row["config"] == text)
    return SCHEDULERS[name]()


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["area"] == "scheduler" and "next_lrs" in c], ids=lambda c: c["case"]
)  # fmt: skip
def test_odd_records_end_as_burns_do_when_allowed(case):
    """With `allow_partial` the state and the next rates are Burn's; else what is odd is an error."""
    made = record(case["input"], LrSchedulerRecord)
    scheduler = by_config(case["config"])
    notes = scheduler.load_record(made, allow_partial=True)
    assert {name: scalar(value) for name, value in case["state"].items()} == dict(
        scheduler.into_record().scalars
    )
    assert case["next_lrs"] == [step_of(scheduler) for _ in case["next_lrs"]]
    if notes:
        strict = by_config(case["config"])
        before = strict.into_record()
        with pytest.raises(RecordError, match="nothing was loaded"):
            strict.load_record(made)
        assert before == strict.into_record()


def step_of(scheduler):
    if isinstance(scheduler, lr.ModuleScheduler):
        return scheduler.rates().of(0, "weight")
    return scheduler.step()


def test_records_of_nothing_known_are_errors():
    """Unprefixed names, an optimizer's record, and a broken file are refused (R64, R70)."""
    with pytest.raises(RecordError, match="remaining_iters belongs to nothing here"):
        lr.Linear(0.5, 0.1, 8).load_record(
            LrSchedulerRecord(scalars={"remaining_iters": Scalar("UInt", 4)})
        )
    with pytest.raises(RecordError, match="4 tensors; is it the record of a module"):
        lr.Constant(0.1).load_record(LrSchedulerRecord.load(FOLDER / "optim_adam_1.bpk"))
    with pytest.raises(ValueError, match="not a burnpack"):
        LrSchedulerRecord.from_bytes(bytes(40))


def test_a_step_scheduler_ends_at_burns_limit():
    """The counter is 32 bits wide: the last call is an error, not a wrong rate (R109)."""
    scheduler = lr.Step(0.5, 3)
    scheduler.iter_idx = 2**31 - 1
    with pytest.raises(OverflowError):
        scheduler.step()


BAD = {
    "linear initial 0": lambda: lr.Linear(0, 0.1, 5),
    "linear initial above 1": lambda: lr.Linear(1.5, 0.1, 5),
    "linear final negative": lambda: lr.Linear(0.5, -0.1, 5),
    "linear final above 1": lambda: lr.Linear(0.5, 1.1, 5),
    "linear 0 iterations": lambda: lr.Linear(0.5, 0.1, 0),
    "cosine initial 0": lambda: lr.Cosine(0, 5),
    "cosine min above initial": lambda: lr.Cosine(0.5, 5, 0.6),
    "cosine min negative": lambda: lr.Cosine(0.5, 5, -0.1),
    "cosine 0 iterations": lambda: lr.Cosine(0.5, 0),
    "exponential gamma 0": lambda: lr.Exponential(0.5, 0),
    "exponential gamma above 1": lambda: lr.Exponential(0.5, 1.1),
    "noam warmup 0": lambda: lr.Noam(1, warmup_steps=0),
    "noam model size 0": lambda: lr.Noam(1, model_size=0),
    "step size 0": lambda: lr.Step(0.5, 0),
    "sequential empty": lambda: lr.Sequential([], []),
    "sequential milestone count": lambda: lr.Sequential([lr.Constant(1)] * 2, []),
    "sequential milestone 0": lambda: lr.Sequential([lr.Constant(1)] * 2, [0]),
    "sequential milestones equal": lambda: lr.Sequential([lr.Constant(1)] * 3, [2, 2]),
    "composed with bad child": lambda: lr.Composed([lr.Linear(0, 0.1, 5)]),
}
GOOD = {
    "linear initial NaN": lambda: lr.Linear(float("nan"), 0.1, 5),
    "linear final 0": lambda: lr.Linear(0.5, 0, 5),
    "exponential gamma 1": lambda: lr.Exponential(0.5, 1),
    "noam factor negative": lambda: lr.Noam(-1),
    "step initial negative": lambda: lr.Step(-0.5, 2),
    "step gamma 2": lambda: lr.Step(0.5, 2, 2.0),
}
CONFIG_CASES = {c["case"]: c for c in CASES if c["area"] == "config" and "config" in c}


def test_every_recorded_configuration_is_tried():
    """The two tables below are all configurations of schedulers that were recorded."""
    assert set(CONFIG_CASES) == set(BAD) | set(GOOD)


@pytest.mark.parametrize("name", BAD)
def test_configurations_that_burn_refuses_are_refused(name):
    """R66: wrong values are found when the scheduler is built."""
    assert CONFIG_CASES[name]["outcome"] == "error"
    with pytest.raises(ValueError, match=r"expected|needs"):
        BAD[name]()


@pytest.mark.parametrize("name", GOOD)
def test_odd_configurations_that_burn_accepts_give_its_rates(name):
    """NaN, zeros, negative factors: the first three rates are Burn's."""
    scheduler = GOOD[name]()
    wanted = [float(text) for text in CONFIG_CASES[name]["lrs"]]
    assert [bits(rate) for rate in wanted] == [bits(scheduler.step()) for _ in wanted]
