"""A training that is killed with SIGKILL again and again ends where an undisturbed one does.

Five kills always; fifty with ``BPK_SLOW=1``.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bpk_lite.desktop import Checkpoints
from tests.desktop import kill_run

SCRIPT = Path(kill_run.__file__)


def last_params(folder):
    record = Checkpoints(folder).restore(kill_run.EPOCHS).model
    return {path: tensor.to_bytes() for path, tensor in record.tensors.items()}


def started(folder):
    """Start the training; return it when it has found where to go on."""
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[2])}
    process = subprocess.Popen(
        [sys.executable, SCRIPT, folder], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert "ready\n" == process.stdout.readline()
    return process


def finished(process):
    with process:
        assert "done\n" == process.stdout.readline()
    return process.wait() == 0


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize(
    "kills",
    [
        5,
        pytest.param(
            50,
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(not os.environ.get("BPK_SLOW"), reason="BPK_SLOW=1 runs it"),
            ],
        ),
    ],
)
def test_a_killed_training_ends_with_the_same_bits(kills, tmp_path):
    """Each kill leaves complete epochs only, the run goes on from the latest, and ends the same."""
    kill_run.main(tmp_path / "whole", wait=False)
    expected = last_params(tmp_path / "whole")
    # a run saves its 20 epochs in about this time, without starting up
    begin = time.perf_counter()
    kill_run.main(tmp_path / "timed", wait=False)
    span = time.perf_counter() - begin
    assert expected == last_params(tmp_path / "timed")

    randomly = random.Random(kills)
    killed = runs = unfinished = 0
    folder, latest = tmp_path / "run-0", 0
    while killed < kills:
        process = started(folder)
        time.sleep(randomly.uniform(0, span * 4 / kill_run.EPOCHS))
        process.send_signal(signal.SIGKILL)
        with process:
            last = process.stdout.read()
        if process.wait() == -signal.SIGKILL and not last:
            killed += 1
            checkpoints = Checkpoints(folder)
            now = checkpoints.latest() or 0
            assert now >= latest
            for epoch in checkpoints.epochs():
                found = checkpoints.restore(epoch)
                assert found.model is not None
                assert epoch * kill_run.STEPS - 1 == found.scheduler.scalars["0.current_iter"].value
                times = {s.value for n, s in found.optim.scalars.items() if n.endswith(".time")}
                assert {epoch * kill_run.STEPS} == times
            unfinished += bool(checkpoints.incomplete()) or any(
                name.endswith((".tmp", ".deleting")) for name in os.listdir(folder)
            )
            latest = now
        if latest == kill_run.EPOCHS or process.returncode == 0:
            assert expected == last_params(folder)
            runs += 1
            folder, latest = tmp_path / f"run-{runs}", 0
    assert finished(started(folder))
    assert expected == last_params(folder)
    whole = sorted(Checkpoints(tmp_path / "whole").epochs())
    assert whole == Checkpoints(folder).epochs()
    assert sorted(os.listdir(tmp_path / "whole")) == sorted(os.listdir(folder))
    print(f"{kills} kills over {runs + 1} runs, {unfinished} in the middle of a save or delete")
