"""What a process leaves that dies at any moment of a save or delete (R77 is where Burn leaves parts).

Death is played here: the n-th operation on the file system, and every one after it, does not happen,
so neither does any cleaning up. `test_checkpoint_kill` kills real processes.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from bpk_lite.desktop import Checkpoints, KeepLastN
from bpk_lite.pack import Scalar, Tensor
from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord

ALL = KeepLastN(100)
OPERATIONS = ("open", "replace", "rename", "unlink", "fsync", "link", "fchmod", "utime")


class Death(BaseException):
    """The process is gone."""


class Reaper:
    """Counts operations on the file system and stops at one."""

    def __init__(self, monkeypatch):
        self.left = None
        self.count = 0
        for name in OPERATIONS:
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, operation):
        def watched(*arguments, **keywords):
            writes = operation.__name__ != "open" or arguments[1] & (os.O_WRONLY | os.O_RDWR)
            if writes:
                if self.left is not None:
                    if self.left == 0:
                        raise Death
                    self.left -= 1
                self.count += 1
            return operation(*arguments, **keywords)

        watched.__name__ = operation.__name__
        return watched


@pytest.fixture
def reaper(monkeypatch):
    return Reaper(monkeypatch)


def parts(value, names=("model", "optim", "scheduler")):
    """Return records whose content tells which save they are of."""
    made = {
        "model": ModuleRecord([Tensor.from_array("w", np.full(3, value, "<f4"), param_id=7)]),
        "optim": OptimizerRecord(
            [Tensor.from_array("7.momentum.velocity", np.full(3, value, "<f4"), param_id=7)]
        ),
        "scheduler": LrSchedulerRecord(scalars={"0.previous_lr": Scalar("Float", float(value))}),
    }
    return {name: made[name] for name in names}


def value_of(folder, epoch):
    """Return which save an epoch is of; fail if its parts are of several. None: it is not whole."""
    checkpoints = Checkpoints(folder)
    if epoch not in checkpoints.epochs():
        return None
    found = checkpoints.restore(epoch)
    values = {float(found.model["w"].numpy()[0])}
    if found.optim is not None:
        values.add(float(found.optim.tensors["7.momentum.velocity"].numpy()[0]))
    if found.scheduler is not None:
        values.add(found.scheduler.scalars["0.previous_lr"].value)
    (value,) = values
    return value


def deaths(reaper, prepare, act, tmp_path):
    """Yield a folder for each moment at which `act` can die, and whether it lived through."""
    for moment in range(1000):
        folder = tmp_path / str(moment)
        reaper.left = None
        prepare(folder)
        reaper.left = moment
        try:
            act(folder)
        except Death:
            reaper.left = None
            yield folder, False
            continue
        reaper.left = None
        yield folder, True
        return


def burn_writes(folder, epoch, value):
    """Write files without a marker, as Burn does."""
    folder.mkdir(exist_ok=True)
    for name, record in parts(value).items():
        record.save(folder / f"{name}-{epoch}")


def goes_on(folder, epoch):
    """Check that a new process saves, that the epoch is then the new one, and nothing is left."""
    assert Checkpoints(folder, ALL).save(epoch, **parts(9.0))
    assert 9.0 == value_of(folder, epoch)
    # the leftovers are those of a living process here: ours
    left = [name for name in os.listdir(folder) if name.endswith(".deleting")]
    assert [] == left


SAVES = {
    "new": (lambda f: None, parts(2.0), {None, 2.0}),
    "again": (lambda f: Checkpoints(f, ALL).save(1, **parts(1.0)), parts(2.0), {1.0, 2.0}),
    "fewer": (
        lambda f: Checkpoints(f, ALL).save(1, **parts(1.0)),
        parts(2.0, ("model", "optim")),
        {1.0, 2.0},
    ),
    "more": (
        lambda f: Checkpoints(f, ALL).save(1, **parts(1.0, ("model",))),
        parts(2.0),
        {1.0, 2.0},
    ),
    "burns": (lambda f: burn_writes(f, 1, 1.0), parts(2.0), {1.0, 2.0}),
}


@pytest.mark.parametrize("name", SAVES)
def test_a_save_that_dies_leaves_the_old_epoch_or_the_new(name, reaper, tmp_path):
    """At every moment the epoch is whole and of one save, or not there; and then training goes on."""
    prepare, records, allowed = SAVES[name]
    seen = []
    for folder, lived in deaths(
        reaper, prepare, lambda f: Checkpoints(f, ALL).save(1, **records), tmp_path
    ):
        value = value_of(folder, 1)
        assert value in allowed, folder
        assert not lived or value == 2.0
        seen.append(value)
        goes_on(folder, 1)
    assert allowed == set(seen)
    # once it is the new one it stays the new one
    assert seen == sorted(seen, key=lambda value: value == 2.0)
    assert len(seen) > 15


@pytest.mark.parametrize(
    ("names", "ours"),
    [
        (("model", "optim", "scheduler"), True),
        (("model", "optim"), True),
        (("model",), True),
        (("model", "optim", "scheduler"), False),
    ],
    ids=["three", "two", "one", "burns"],
)
def test_a_delete_that_dies_leaves_a_whole_epoch_or_none(names, ours, reaper, tmp_path):
    """A half-deleted epoch never counts, and the next writer finishes it."""

    def prepare(folder):
        if ours:
            Checkpoints(folder, ALL).save(1, **parts(1.0, names))
        else:
            burn_writes(folder, 1, 1.0)

    seen, finished = [], 0
    for folder, lived in deaths(reaper, prepare, lambda f: Checkpoints(f).delete(1), tmp_path):
        seen.append(value_of(folder, 1))
        assert not lived or [] == os.listdir(folder)
        begun = (folder / "checkpoint-1.deleting").exists()
        Checkpoints(folder, ALL).save(2, **parts(2.0))
        finished += begun
        if begun:
            assert not [n for n in os.listdir(folder) if "-1." in n], folder
        goes_on(folder, 1)
    assert {1.0, None} == set(seen)
    assert seen == sorted(seen, key=lambda value: value is None)
    assert finished > len(names)


def test_recovery_that_dies_is_recovered_from(reaper, tmp_path):
    """Dying again while finishing what another death has left changes no answer."""

    def half_saved(folder):
        Checkpoints(folder, ALL).save(1, **parts(1.0))
        reaper.left = None
        for moment in range(100):  # die just after the marker is in place
            reaper.left = moment
            try:
                Checkpoints(folder, ALL).save(1, **parts(2.0))
            except Death:
                reaper.left = None
                if value_of(folder, 1) == 2.0:
                    return
            finally:
                reaper.left = None

    for folder, _ in deaths(
        reaper, half_saved, lambda f: Checkpoints(f, ALL).save(2, **parts(3.0)), tmp_path
    ):
        assert 2.0 == value_of(folder, 1)
        goes_on(folder, 2)
        assert 2.0 == value_of(folder, 1)


def test_a_save_that_is_interrupted_after_the_marker_counts(tmp_path, monkeypatch):
    """An exception there cannot take back what the marker has published, and does not break it."""
    replace = os.replace

    def interrupted(source, destination):
        replace(source, destination)
        if str(destination).endswith(".json"):
            raise KeyboardInterrupt

    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts(1.0))
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(1, **parts(2.0))
    monkeypatch.setattr(os, "replace", replace)
    assert 2.0 == value_of(tmp_path, 1)
    goes_on(tmp_path, 1)


def test_what_a_dead_process_left_is_removed_by_the_next_writer(tmp_path):
    """Scratch files of a process that is gone go at the next save; those of a living one stay."""
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    living = f"model-4.bpk.{os.getppid()}-3.tmp"
    names = [
        f"model-4.bpk.{process.pid}-0.tmp",
        f"optim-4.bpk.{process.pid}-00ff00ff00ff00ff.tmp",
        f"checkpoint-4.json.{process.pid}-1.tmp",
        f"metrics.json.{process.pid}-2.tmp",
        living,
    ]
    for name in names:
        (tmp_path / name).write_bytes(b"left")
    assert [] == Checkpoints(tmp_path).epochs()
    Checkpoints(tmp_path, ALL).save(1, **parts(1.0))
    assert [living] == [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_what_an_earlier_process_of_our_number_left_is_removed(tmp_path):
    """In a container every run may have the same number; an old file is not ours."""
    old, new = (tmp_path / f"model-4.bpk.{os.getpid()}-{n}.tmp" for n in (0, 1))
    old.write_bytes(b"left")
    new.write_bytes(b"being written")
    os.utime(old, (1, 1))
    Checkpoints(tmp_path, ALL).save(1, **parts(1.0))
    assert (False, True) == (old.exists(), new.exists())


def test_a_marker_whose_files_went_without_it_goes_too(tmp_path):
    """As when Burn deletes an epoch of ours, whose marker it does not know."""
    Checkpoints(tmp_path, ALL).save(1, **parts(1.0))
    for name in ("model", "optim", "scheduler"):
        (tmp_path / f"{name}-1.bpk").unlink()
    Checkpoints(tmp_path, ALL).save(2, **parts(2.0))
    assert "checkpoint-1.json" not in os.listdir(tmp_path)


def test_an_epoch_that_is_being_deleted_does_not_count(tmp_path):
    """From the tombstone on, though all its files are there."""
    Checkpoints(tmp_path, ALL).save(1, **parts(1.0))
    (tmp_path / "checkpoint-1.deleting").touch()
    assert {1: "it is being deleted"} == Checkpoints(tmp_path).incomplete()
    Checkpoints(tmp_path, ALL).save(2, **parts(2.0))
    assert ([2], []) == (
        Checkpoints(tmp_path).epochs(),
        [name for name in os.listdir(tmp_path) if "-1." in name],
    )
