"""Torch's schedulers into records and back: Burn's numbers at every step (R62 to R66)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler as theirs

import bpk_lite.torch as bt
from bpk_lite.optim import lr as ours
from bpk_lite.pack import RecordError, Scalar
from bpk_lite.records import LrSchedulerRecord

BASE = 0.5
PAIRS = {
    "cosine": (
        lambda o: theirs.CosineAnnealingLR(o, 7, eta_min=0.05),
        lambda: ours.Cosine(BASE, 7, 0.05),
    ),
    "linear": (
        lambda o: theirs.LinearLR(o, start_factor=1.0, end_factor=0.2, total_iters=8),
        lambda: ours.Linear(BASE, BASE * 0.2, 8),
    ),
    "exponential": (
        lambda o: theirs.ExponentialLR(o, 0.9),
        lambda: ours.Exponential(BASE, 0.9),
    ),
    "step": (lambda o: theirs.StepLR(o, 3, 0.7), lambda: ours.Step(BASE, 3, 0.7)),
    "plain": (lambda o: theirs.ConstantLR(o, 1.0), lambda: ours.Constant(BASE)),
    "constant": (
        lambda o: theirs.ConstantLR(o, 0.25, total_iters=4),
        lambda: ours.Sequential([ours.Constant(BASE * 0.25), ours.Constant(BASE)], [4]),
    ),
    "sequential": (
        lambda o: theirs.SequentialLR(
            o,
            [
                theirs.LinearLR(o, 0.1, 1.0, total_iters=3),
                theirs.CosineAnnealingLR(o, 5),
                theirs.ExponentialLR(o, 0.5),
            ],
            [3, 8],
        ),
        lambda: ours.Sequential(
            [ours.Linear(BASE * 0.1, BASE, 3), ours.Cosine(BASE, 5), ours.Exponential(BASE, 0.5)],
            [3, 8],
        ),
    ),
    "chained": (
        lambda o: theirs.ChainedScheduler(
            [theirs.LinearLR(o, 0.5, 1.0, total_iters=4), theirs.StepLR(o, 3, 0.5)]
        ),
        lambda: ours.Composed([ours.Linear(0.5, 1.0, 4), ours.Step(BASE, 3, 0.5)]),
    ),
}


def optimizer(*rates):
    groups = [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": rate} for rate in rates]
    return torch.optim.SGD(groups or [torch.nn.Parameter(torch.ones(1))], lr=BASE)


def rates(scheduler, steps):
    """Return the rates of the next steps of the optimizer."""
    found = []
    for _ in range(steps):
        found.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("done", range(12))
def test_the_rates_go_on_in_ours_and_back(name, done):
    """After any number of steps, 0 included, the next rates are the same in all three (R62, R66)."""
    make, make_ours = PAIRS[name]
    scheduler = make(optimizer())
    rates(scheduler, done)
    record = bt.scheduler_into_record(scheduler)
    mine = make_ours()
    expected_record = make_ours()
    for _ in range(done):
        expected_record.step()
    assert expected_record.into_record().scalars.keys() == record.scalars.keys()
    for key, scalar in expected_record.into_record().scalars.items():
        assert scalar.kind == record.scalars[key].kind
        assert scalar.value == pytest.approx(record.scalars[key].value, rel=1e-12)
    mine.load_record(record)
    other = make(optimizer())
    bt.load_scheduler_record(other, mine.into_record())
    expected = rates(scheduler, 6)
    np.testing.assert_allclose([mine.step() for _ in range(6)], expected, rtol=1e-9, atol=1e-12)
    if name != "plain":  # a constant rate has no number, so torch's own count is not in the record
        np.testing.assert_allclose(rates(other, 6), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_loading_takes_a_scheduler_back_as_well(name):
    """Whatever a scheduler has done, a record puts it and the optimizer's rate where it says."""
    make, _ = PAIRS[name]
    scheduler = make(optimizer())
    rates(scheduler, 2)
    record = bt.scheduler_into_record(scheduler)
    expected = rates(scheduler, 9)
    bt.load_scheduler_record(scheduler, record)
    np.testing.assert_allclose(rates(scheduler, 9), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("done", [0, 2, 3, 7, 8, 11])
def test_the_children_stand_where_torch_would_have_them(done):
    """Those that are done stay at their last rate, those to come have not begun."""
    make, _ = PAIRS["sequential"]
    scheduler, other = make(optimizer()), make(optimizer())
    rates(scheduler, done)
    bt.load_scheduler_record(other, bt.scheduler_into_record(scheduler))
    assert [child.last_epoch for child in scheduler._schedulers] == [
        child.last_epoch for child in other._schedulers
    ]


def test_the_unstarted_cosine_is_the_largest_word():
    """``current_iter`` is 2^64 - 1 before the first call (R62), under the index 0 (R64)."""
    scheduler = theirs.CosineAnnealingLR(optimizer(), 7)
    assert {"0.current_iter": Scalar("UInt", 2**64 - 1)} == dict(
        bt.scheduler_into_record(scheduler).scalars
    )


def test_groups_keep_their_own_base_rates():
    """A counter serves all groups; Burn's exponential number has room for one rate."""
    scheduler = theirs.StepLR(optimizer(0.5, 0.1), 2, 0.5)
    rates(scheduler, 3)
    other = theirs.StepLR(optimizer(0.5, 0.1), 2, 0.5)
    bt.load_scheduler_record(other, bt.scheduler_into_record(scheduler))
    assert [0.25, 0.05] == [group["lr"] for group in other.optimizer.param_groups]
    with pytest.raises(RecordError, match="2 different ones"):
        bt.scheduler_into_record(theirs.ExponentialLR(optimizer(0.5, 0.1), 0.9))


def test_a_rate_in_a_tensor_stays_the_tensor():
    """A capturable optimizer has its rate in a tensor, which is written into."""
    inner = optimizer()
    inner.param_groups[0]["lr"] = torch.tensor(BASE)
    scheduler = theirs.StepLR(inner, 1, 0.5)
    held = inner.param_groups[0]["lr"]
    bt.load_scheduler_record(scheduler, LrSchedulerRecord(scalars={"0.iter_idx": Scalar("Int", 1)}))
    assert inner.param_groups[0]["lr"] is held
    assert BASE / 4 == held.item()


def test_a_rate_that_something_else_has_changed_is_refused():
    """The number in a record would not give the rate that the optimizer has."""
    scheduler = theirs.StepLR(optimizer(), 3)
    scheduler.optimizer.param_groups[0]["lr"] = 0.123
    with pytest.raises(RecordError, match=r"gives a rate of 0.5, but the optimizer's is 0.123"):
        bt.scheduler_into_record(scheduler)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: theirs.LambdaLR(o, lambda _n: 1.0), "no counterpart of LambdaLR"),
        (lambda o: theirs.MultiStepLR(o, [2]), "no counterpart of MultiStepLR"),
        (
            lambda o: theirs.ChainedScheduler([theirs.ExponentialLR(o, 0.9)]),
            "ChainedScheduler with ExponentialLR is no product",
        ),
        (
            lambda o: theirs.ChainedScheduler([theirs.CosineAnnealingLR(o, 3, eta_min=0.1)]),
            "CosineAnnealingLR and eta_min is no product",
        ),
    ],
    ids=["lambda", "multistep", "exponential", "eta_min"],
)
def test_what_burn_lacks_is_refused(make, message):
    """The error says what has no counterpart, when saving and when loading."""
    scheduler = make(optimizer())
    with pytest.raises(RecordError, match=message):
        bt.scheduler_into_record(scheduler)
    with pytest.raises(RecordError, match=message):
        bt.load_scheduler_record(scheduler, LrSchedulerRecord())


@pytest.mark.parametrize(
    ("name", "scalars", "message"),
    [
        ("step", {}, "0.iter_idx is missing"),
        ("step", {"iter_idx": Scalar("Int", 1)}, "0.iter_idx is missing"),
        ("step", {"0.iter_idx": Scalar("Float", 1.0)}, "no integer"),
        ("cosine", {"0.current_iter": Scalar("Int", -1)}, "no unsigned"),
        ("linear", {"0.remaining_iters": Scalar("UInt", 10)}, "more than the 8 iterations"),
        ("exponential", {"0.previous_lr": Scalar("Float", 0.3)}, "no rate of 0.5 times powers"),
        ("plain", {"0.step": Scalar("UInt", 1)}, r"belongs to nothing.*index 0\."),
        (
            "sequential",
            {
                "0.step": Scalar("UInt", 4),
                "0.0.remaining_iters": Scalar("UInt", 1),
                "0.1.current_iter": Scalar("UInt", 3),
                "0.2.previous_lr": Scalar("Float", 1.0),
            },
            "scheduler 1 has been called 4 times, but by the others it is 1",
        ),
        (
            "chained",
            {"0.0.remaining_iters": Scalar("UInt", 3), "0.1.iter_idx": Scalar("Int", 4)},
            "scheduler 0 has been called 2 times, but by the others it is 5",
        ),
    ],
)
def test_a_record_that_does_not_fit_changes_nothing(name, scalars, message):
    """Burn keeps its state without a word (R67); here the error says which number and why."""
    scheduler = PAIRS[name][0](optimizer())
    rates(scheduler, 2)
    before = (scheduler.optimizer.param_groups[0]["lr"], getattr(scheduler, "last_epoch", None))
    with pytest.raises(RecordError, match=message):
        bt.load_scheduler_record(scheduler, LrSchedulerRecord(scalars=scalars))
    after = (scheduler.optimizer.param_groups[0]["lr"], getattr(scheduler, "last_epoch", None))
    assert before == after


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("linear", lambda o: theirs.LinearLR(o, 1.0, 0.2, total_iters=8)),
        ("cosine_min", lambda o: theirs.CosineAnnealingLR(o, 7, eta_min=0.05)),
        ("exponential", lambda o: theirs.ExponentialLR(o, 0.9)),
        ("step", lambda o: theirs.StepLR(o, 3, 0.1)),
    ],
)
def test_real_burn_goes_on_with_torchs_rates(name, make, oracle, tmp_path):
    """A scheduler that torch has stepped four times gives Burn the next rates."""
    scheduler = make(optimizer())
    rates(scheduler, 4)
    path = bt.scheduler_into_record(scheduler).save(tmp_path / "scheduler")
    answer = oracle("oracle-record", "load-sched", name, path, "--steps", 4)
    found = [row["value"] for row in answer["lrs"]]
    np.testing.assert_allclose(found, rates(scheduler, 4), rtol=1e-9)
