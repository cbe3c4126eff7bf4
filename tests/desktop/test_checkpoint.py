"""Checkpointers of one kind of record, synchronous and on a thread (R71 to R74, R78)."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from bpk_lite.desktop import (
    AsyncCheckpointer,
    Checkpoint,
    FileCheckpointer,
    NoCheckpoint,
)
from bpk_lite.pack import FormatError, ReadError, Scalar, Tensor, WriteError
from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord, Record


def model(value=1.0):
    return ModuleRecord([Tensor.from_array("w", np.full(3, value, "<f4"), param_id=7)])


def scheduler(value):
    return LrSchedulerRecord(scalars={"0.iter_idx": Scalar("Int", value)})


def test_the_records_and_the_noop_are_checkpoints():
    """All four have save, load, into_bytes and from_bytes (R71)."""
    for record in (model(), OptimizerRecord(), LrSchedulerRecord(), NoCheckpoint()):
        assert isinstance(record, Checkpoint)
    assert not isinstance(np.ones(1), Checkpoint)


def test_the_noop_saves_no_file_and_is_one_byte(tmp_path):
    """Saving writes nothing, loading succeeds, its bytes are a single 0 (R71)."""
    NoCheckpoint().save(tmp_path / "none")
    assert [] == os.listdir(tmp_path)
    assert NoCheckpoint() == NoCheckpoint.load(tmp_path / "none")
    assert (b"\0", NoCheckpoint()) == (NoCheckpoint().into_bytes(), NoCheckpoint.from_bytes(b""))


def test_files_are_named_by_name_and_epoch(tmp_path):
    """``{directory}/{name}-{epoch}.bpk``, the epoch without padding (R74, R75)."""
    folder = tmp_path / "a" / "b"
    for name, kind, record in (
        ("model", ModuleRecord, model()),
        ("optim", OptimizerRecord, OptimizerRecord()),
        ("scheduler", LrSchedulerRecord, scheduler(1)),
        ("policy", Record, Record()),
    ):
        checkpointer = FileCheckpointer(folder, name)
        checkpointer.save(12, record)
        found = checkpointer.restore(12)
        assert (kind, record) == (type(found), found)
    assert ["model-12.bpk", "optim-12.bpk", "policy-12.bpk", "scheduler-12.bpk"] == sorted(
        os.listdir(folder)
    )


def test_a_kind_can_be_named(tmp_path):
    """Any checkpoint works, the no-op too, and None saves nothing (R71)."""
    checkpointer = FileCheckpointer(tmp_path, "extra", NoCheckpoint)
    checkpointer.save(1, NoCheckpoint())
    checkpointer.save(1, None)
    assert NoCheckpoint() == checkpointer.restore(1)
    assert [] == os.listdir(tmp_path)


def test_an_epoch_is_replaced_and_what_was_restored_stays(tmp_path):
    """Overwriting is allowed (R74); a record goes on giving what its file held."""
    checkpointer = FileCheckpointer(tmp_path, "model")
    checkpointer.save(1, model(1))
    before = checkpointer.restore(1)
    checkpointer.save(1, model(2))
    assert (model(1), model(2)) == (before, checkpointer.restore(1))
    checkpointer.delete(1)
    assert model(1) == before


def test_deleting_what_is_absent_succeeds(tmp_path):
    """Delete of an absent file is no error, restoring one is (R73, R74)."""
    checkpointer = FileCheckpointer(tmp_path, "model")
    checkpointer.save(1, model())
    checkpointer.delete(1)
    checkpointer.delete(1)
    assert [] == os.listdir(tmp_path)
    with pytest.raises(ReadError, match=r"model-1\.bpk"):
        checkpointer.restore(1)
    (tmp_path / "model-2.bpk").write_bytes(b"half a file")
    with pytest.raises(FormatError, match=r"model-2\.bpk"):
        checkpointer.restore(2)


def test_a_directory_that_cannot_be_made_shows_when_saving(tmp_path):
    """Construction ignores it (R74)."""
    (tmp_path / "file").write_bytes(b"")
    checkpointer = FileCheckpointer(tmp_path / "file" / "sub", "model")
    with pytest.raises(WriteError, match=r"model-1\.bpk"):
        checkpointer.save(1, model())


def test_a_file_that_cannot_be_deleted_is_an_error(tmp_path):
    """The one I/O error of a checkpointer (R73)."""
    (tmp_path / "model-1.bpk").mkdir()
    with pytest.raises(WriteError, match=r"cannot delete .*model-1\.bpk"):
        FileCheckpointer(tmp_path, "model").delete(1)


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError), ("1", TypeError)]
)
def test_an_epoch_is_a_number_from_0(tmp_path, epoch, error):
    """Anything else would make a file that Burn does not find."""
    with pytest.raises(error, match="an epoch is"):
        FileCheckpointer(tmp_path, "model").save(epoch, model())


# -- on a thread


class Slow:
    """A checkpointer that works when it is told to, and fails for negative epochs."""

    def __init__(self):
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.done = []

    def _work(self, what, epoch):
        self.begun.release()
        assert self.go.acquire(timeout=10)
        if epoch < 0:
            raise WriteError(f"the disk is full at {epoch}")
        self.done.append((what, epoch))

    def save(self, epoch, record):
        self._work("save", epoch)

    def delete(self, epoch):
        self._work("delete", epoch)

    def restore(self, epoch):
        self.done.append(("restore", epoch))
        return epoch


def test_a_save_returns_while_the_thread_works():
    """The call hands over and goes on; jobs run in order, also before a restore (R78)."""
    inner = Slow()
    with AsyncCheckpointer(inner) as checkpointer:
        checkpointer.save(1, "record")
        assert inner.begun.acquire(timeout=10)
        assert [] == inner.done
        inner.go.release(2)
        checkpointer.delete(2)
        assert 3 == checkpointer.restore(3)
        assert [("save", 1), ("delete", 2), ("restore", 3)] == inner.done


def test_there_is_no_queue():
    """A second save waits until the first is done: one record at a time is held (R78)."""
    inner = Slow()
    checkpointer = AsyncCheckpointer(inner)
    checkpointer.save(1, "record")
    second = threading.Thread(target=checkpointer.save, args=(2, "record"))
    second.start()
    second.join(0.05)
    assert second.is_alive()
    inner.go.release()
    second.join(10)
    assert not second.is_alive()
    inner.go.release()
    checkpointer.close()
    assert [("save", 1), ("save", 2)] == inner.done


@pytest.mark.parametrize("call", ["save", "delete", "restore", "close"])
def test_an_error_surfaces_at_the_next_call(call):
    """Whatever the next call is, it raises the error instead of doing its job; then all goes on."""
    inner = Slow()
    checkpointer = AsyncCheckpointer(inner)
    inner.go.release(2)
    checkpointer.save(-1, "record")
    arguments = {"save": (2, "record"), "delete": (2,), "restore": (2,), "close": ()}[call]
    with pytest.raises(WriteError, match="the disk is full at -1") as caught:
        getattr(checkpointer, call)(*arguments)
    assert ["while saving epoch -1 in the background"] == caught.value.__notes__
    assert [] == inner.done
    if call != "close":
        checkpointer.save(3, "record")
        checkpointer.close()
        assert [("save", 3)] == inner.done


def test_a_last_error_surfaces_at_the_end_of_the_block():
    """Leaving the context raises it; an exception of the body keeps the lead and is told of it."""
    inner = Slow()
    inner.go.release(2)
    with pytest.raises(WriteError, match="full"), AsyncCheckpointer(inner) as checkpointer:
        checkpointer.save(-1, "record")
    with pytest.raises(KeyError) as caught, AsyncCheckpointer(inner) as checkpointer:
        checkpointer.save(-2, "record")
        raise KeyError("body")
    assert ["the checkpointer failed too: WriteError: the disk is full at -2"] == (
        caught.value.__notes__
    )


def test_a_closed_one_takes_no_more():
    """Closing ends the thread, may be repeated, and leaves none behind."""
    before = threading.active_count()
    checkpointer = AsyncCheckpointer(Slow())
    assert before + 1 == threading.active_count()
    checkpointer.close()
    checkpointer.close()
    assert before == threading.active_count()
    with pytest.raises(ValueError, match="closed"):
        checkpointer.save(1, "record")


def test_dropping_it_waits_for_the_job_and_ends_the_thread(caplog):
    """Nothing is lost with the object (R78); an error that nobody can catch is logged."""
    before = threading.active_count()
    inner = Slow()
    inner.go.release(2)
    checkpointer = AsyncCheckpointer(inner)
    checkpointer.save(1, "record")
    checkpointer.save(-1, "record")
    del checkpointer
    gc.collect()
    assert ([("save", 1)], before) == (inner.done, threading.active_count())
    assert "saving epoch -1 in the background failed: the disk is full" in caplog.text


def test_the_end_of_the_program_waits_for_the_job(tmp_path):
    """A save that was handed over last is on disk when the process is gone."""
    program = f"""
import numpy as np
from bpk_lite.desktop import AsyncCheckpointer, FileCheckpointer
from bpk_lite.pack import Tensor
from bpk_lite.records import ModuleRecord
import time
def slowly():
    time.sleep(0.3)
    return np.ones(2, "<f4")
c = AsyncCheckpointer(FileCheckpointer({str(tmp_path)!r}, "model"))
c.save(1, ModuleRecord([Tensor.deferred("w", "F32", (2,), slowly)]))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert ["model-1.bpk"] == os.listdir(tmp_path)


def test_files_through_a_thread(tmp_path):
    """The two together: what was saved is restored."""
    with AsyncCheckpointer(FileCheckpointer(tmp_path, "model")) as checkpointer:
        for epoch in (1, 2, 3):
            checkpointer.save(epoch, model(epoch))
            checkpointer.delete(epoch - 1)
        assert model(3) == checkpointer.restore(3)
    assert ["model-3.bpk"] == os.listdir(tmp_path)
