"""Real Burn takes what we wrote, and one more step there equals ours."""

from __future__ import annotations

import numpy as np
import pytest

from bpk_lite.optim import lr
from bpk_lite.pack import Scalar
from bpk_lite.records import OptimizerRecord
from tests.optim.burn import (
    CONFIGS,
    RUNS,
    SCHEDULERS,
    array,
    gradients,
    optimizer,
)
from tests.optim.test_lbfgs import NAMES as LBFGS
from tests.optim.test_lbfgs import Loss, made
from tests.optim.test_lr import bits
from tests.optim.test_runs import ULPS, ulps

pytestmark = [pytest.mark.oracle, pytest.mark.desktop]

# Burn loads state in its default float dtype (R42), so that of other dtypes is given by environment
FLOATS = {"adam_f16": "f16", "adam_bf16": "bf16", "adam_f64": "f64"}


def test_every_kind_that_burn_knows_is_tried(oracle):
    """The zoo of optimizers and schedulers is the one of the tables here."""
    names = oracle("oracle-record", "names")
    assert set(names["optimizers"]) == {*CONFIGS, *LBFGS}
    assert set(names["schedulers"]) == set(SCHEDULERS)


@pytest.mark.parametrize("name", CONFIGS)
def test_burn_continues_from_our_record(oracle, tmp_path, monkeypatch, name):
    """Our state after one step, stepped twice in Burn, gives Burn's params and our record."""
    if name in FLOATS:
        monkeypatch.setenv("ORACLE_FLOAT", FLOATS[name])
    run = RUNS[name]
    ours = optimizer(name, run["initial"])
    first, *rest = run["steps"]
    ours.step(gradients(run, first), lr=first["lr"])
    path = ours.save(tmp_path / "ours")
    answer = oracle("oracle-record", "load-optim", name, path, "--steps", 2, "--from", 1)
    assert "ok" == answer["outcome"]
    for step in rest:
        ours.step(gradients(run, step), lr=step["lr"])
    allowed = ULPS.get(name, -2) + 2
    for row in answer["params"]:
        assert allowed >= ulps(ours.module.state()[row["path"]], array(row))


@pytest.mark.parametrize("name", CONFIGS)
def test_burn_writes_our_record_again(oracle, tmp_path, monkeypatch, name):
    """What Burn loaded of our file it saves with the same content."""
    if name in FLOATS:
        monkeypatch.setenv("ORACLE_FLOAT", FLOATS[name])
    run = RUNS[name]
    ours = optimizer(name, run["initial"])
    ours.step(gradients(run, run["steps"][0]), lr=run["steps"][0]["lr"])
    path, again = ours.save(tmp_path / "ours"), tmp_path / "again.bpk"
    oracle("oracle-record", "load-optim", name, path, "--resave", again)
    assert ours.into_record() == OptimizerRecord.load(again)


@pytest.mark.parametrize("name", LBFGS)
def test_burn_loads_our_lbfgs_record(oracle, tmp_path, name):
    """What Burn loaded of our file it saves as the same file."""
    run = RUNS[name]
    ours = made(name, run["initial"])
    ours.step(Loss(run), run["steps"][0]["lr"])
    path, again = ours.save(tmp_path / "ours"), tmp_path / "again.bpk"
    assert "ok" == oracle("oracle-record", "load-optim", name, path, "--resave", again)["outcome"]
    assert ours.into_record() == OptimizerRecord.load(again)


def longer(record):
    """Return a record whose histories have five pairs, more than the optimizer's three (R98)."""
    tensors, scalars = dict(record.tensors), dict(record.scalars)
    for name in ("history_s", "history_y"):
        olds = [record.tensors[f"{name}.{index}"] for index in (0, 1, 0, 1, 2)]
        tensors |= {f"{name}.{i}": old.replace(name=f"{name}.{i}") for i, old in enumerate(olds)}
        scalars[f"{name}.len"] = Scalar("UInt", len(olds))
    return OptimizerRecord(tensors.values(), scalars=scalars)


@pytest.mark.parametrize("change", [None, longer])
@pytest.mark.parametrize("name", LBFGS)
def test_burn_continues_from_our_lbfgs_record(oracle, tmp_path, name, change):
    """Our state after one call, from the initial params, gives Burn's losses and params (R98)."""
    run = RUNS[name]
    first = made(name, run["initial"])
    first.step(Loss(run), run["steps"][0]["lr"])
    record = change(first.into_record()) if change else first.into_record()
    ours = made(name, run["initial"])
    ours.load_record(record)
    path = record.save(tmp_path / "ours")
    answer = oracle("oracle-record", "load-optim", name, path, "--step")  # from the initial params
    assert "ok" == answer["outcome"]
    (theirs,) = answer["steps"]
    assert theirs["loss"] == pytest.approx(ours.step(Loss(run), run["steps"][0]["lr"]), rel=5e-6)
    for row in theirs["params"]:
        found = ours.module.state()[row["path"]]
        np.testing.assert_allclose(found, array(row), atol=1e-5)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_burn_continues_from_our_schedule(oracle, tmp_path, name):
    """Seven calls here, five in Burn: the same rates as twelve here."""
    scheduler = SCHEDULERS[name]()
    for _ in range(7):
        scheduler.step()
    path = scheduler.into_record().save(tmp_path / "ours")
    answer = oracle("oracle-record", "load-sched", name, path, "--steps", 5)
    if isinstance(scheduler, lr.ModuleScheduler):
        wanted = [
            {path: bits(rates.of(0, path)) for path in ("bias", "norm.gamma", "weight")}
            for rates in (scheduler.rates() for _ in range(5))
        ]
        found = [{path: rate["bits"] for path, rate in row.items()} for row in answer["lrs"]]
    else:
        wanted = [bits(scheduler.step()) for _ in range(5)]
        found = [row["bits"] for row in answer["lrs"]]
    assert wanted == found
