"""Model, optimizer and scheduler of an epoch as a unit (R75 to R77, R83; api.md)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from bpk_lite import nn, optim
from bpk_lite.desktop import (
    CheckpointError,
    Checkpoints,
    Composed,
    FileCheckpointer,
    KeepLastN,
    Metric,
    default_strategy,
)
from bpk_lite.optim import lr
from bpk_lite.pack import ProviderError, RecordError, Scalar, Tensor, WriteError
from bpk_lite.records import LrSchedulerRecord, ModuleRecord, OptimizerRecord

ALL = KeepLastN(100)


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 2)
        self.second = nn.Linear(2, 1)


class Run:
    """A training: a model, Adam, a cosine, and epochs that change all three."""

    def __init__(self):
        self.model = Net()
        self.optim = optim.Adam(self.model)
        self.scheduler = lr.Cosine(0.1, 20)

    def epoch(self):
        params = self.model.named_params()
        grads = {path: np.ones(param.shape, "f4") for path, param in params.items()}
        self.optim.step(grads, lr=self.scheduler.step())

    @property
    def parts(self):
        return {"model": self.model, "optim": self.optim, "scheduler": self.scheduler}

    def state(self):
        return (
            self.model.into_record().into_bytes(),
            self.optim.into_record().into_bytes(),
            self.scheduler.into_record().into_bytes(),
        )


def model(value=1.0):
    return ModuleRecord([Tensor.from_array("w", np.full(3, value, "<f4"), param_id=7)])


def parts(value=1.0):
    """Return records whose content tells which save they are of."""
    state = OptimizerRecord(
        [Tensor.from_array("7.momentum.velocity", np.full(3, value, "<f4"), param_id=7)],
        scalars={"7.__rank": Scalar("UInt", 1)},
    )
    number = LrSchedulerRecord(scalars={"0.previous_lr": Scalar("Float", float(value))})
    return {"model": model(value), "optim": state, "scheduler": number}


def burn_epoch(folder, epoch, value=1.0, names=("model", "optim", "scheduler")):
    """Write an epoch as training in Burn does: single files (R75, R77)."""
    for name in names:
        FileCheckpointer(folder, name).save(epoch, parts(value)[name])


def test_an_epoch_is_saved_and_restored(tmp_path):
    """All three come back, in a process that has a fresh model with other ids (R60)."""
    run, other = Run(), Run()
    checkpoints = Checkpoints(tmp_path / "runs" / "7")
    for epoch in (1, 2, 3):
        run.epoch()
        assert checkpoints.save(epoch, **run.parts, metrics={"loss": 1 / epoch})
    assert run.state() != other.state()
    restored = Checkpoints(tmp_path / "runs" / "7").restore(**other.parts)
    assert (3, {"loss": 1 / 3}) == (restored.epoch, restored.metrics)
    assert run.state() == other.state()
    run.epoch()
    other.epoch()
    assert run.state() == other.state()


def test_files_have_burns_names_and_nothing_but_markers_beside_them(tmp_path):
    """Burn reads the folder: three files of R75 an epoch, each the record's own bytes."""
    Checkpoints(tmp_path, ALL).save(3, **parts())
    assert [
        "checkpoint-3.json",
        "metrics.json",
        "model-3.bpk",
        "optim-3.bpk",
        "scheduler-3.bpk",
    ] == sorted(set(os.listdir(tmp_path)) | {"metrics.json"})
    for name, record in parts().items():
        assert record.into_bytes() == (tmp_path / f"{name}-3.bpk").read_bytes()


def test_records_are_taken_and_given(tmp_path):
    """A record may be saved as it is; without targets a restore gives records and changes nothing."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts(5))
    restored = checkpoints.restore(1)
    assert parts(5) == {
        "model": restored.model,
        "optim": restored.optim,
        "scheduler": restored.scheduler,
    }


def test_what_was_restored_stays_readable(tmp_path):
    """Records hold on to their files, so a later save or delete of the epoch changes nothing."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts(1))
    before = checkpoints.restore(1)
    checkpoints.save(1, model=before.model, optim=parts(2)["optim"])
    assert parts(1)["optim"] == before.optim
    assert (model(1), parts(2)["optim"]) == (
        checkpoints.restore(1).model,
        checkpoints.restore(1).optim,
    )
    checkpoints.delete(1)
    assert (model(1), parts(1)["scheduler"]) == (before.model, before.scheduler)


def test_a_model_that_refers_to_its_own_checkpoint_is_saved_again(tmp_path):
    """A loaded module is a view of the file that is being replaced."""
    run = Run()
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **run.parts)
    expected = run.state()
    checkpoints.restore(1, **run.parts)
    checkpoints.save(1, **run.parts)
    checkpoints.restore(1, **run.parts)
    assert expected == run.state()


def test_an_epoch_may_lack_parts(tmp_path):
    """A run without a scheduler has whole epochs too: the marker says what belongs to one."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, model=model())
    assert ([1], None) == (checkpoints.epochs(), checkpoints.restore().optim)
    with pytest.raises(CheckpointError, match="epoch 1 was saved without optim"):
        checkpoints.restore(1, model=Net(), optim=Run().optim)
    with pytest.raises(ValueError, match="nothing to save"):
        checkpoints.save(2)


def test_a_part_that_an_epoch_no_longer_has_is_removed(tmp_path):
    """Saved again without a scheduler, the epoch has none, for Burn neither."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts())
    checkpoints.save(1, model=model(2))
    assert ["checkpoint-1.json", "model-1.bpk"] == sorted(os.listdir(tmp_path))


def test_a_folder_of_burn_is_read(tmp_path):
    """Three files and no marker: an epoch counts when all three are there (R77)."""
    burn_epoch(tmp_path, 1)
    burn_epoch(tmp_path, 2)
    burn_epoch(tmp_path, 3, names=("model", "optim"))
    burn_epoch(tmp_path, 4, names=("scheduler",))
    checkpoints = Checkpoints(tmp_path)
    assert ([1, 2], 2) == (checkpoints.epochs(), checkpoints.latest())
    assert {3: "there is no scheduler-3.bpk", 4: "there is no model-4.bpk and no optim-4.bpk"} == (
        checkpoints.incomplete()
    )
    assert (2, model()) == (checkpoints.restore().epoch, checkpoints.restore().model)
    with pytest.raises(CheckpointError, match=r"epoch 3 does not count: there is no scheduler-3"):
        checkpoints.restore(3)


def test_a_run_of_burn_goes_on_here(tmp_path):
    """Its epochs are restored, ours are added, its old ones are deleted."""
    burn_epoch(tmp_path, 1)
    burn_epoch(tmp_path, 2)
    checkpoints = Checkpoints(tmp_path, KeepLastN(2))
    assert 2 == checkpoints.restore().epoch
    checkpoints.save(3, **parts(3))
    assert [2, 3] == checkpoints.epochs()
    assert "model-1.bpk" not in os.listdir(tmp_path)


def test_a_file_of_burn_that_is_broken_does_not_count(tmp_path):
    """A truncated file, from a save in place or a full disk, is no part."""
    burn_epoch(tmp_path, 1)
    burn_epoch(tmp_path, 2)
    path = tmp_path / "model-2.bpk"
    path.write_bytes(path.read_bytes()[:-4])
    checkpoints = Checkpoints(tmp_path)
    assert 1 == checkpoints.latest()
    assert "model-2.bpk: 264 bytes, but the tensors end at 268" in checkpoints.incomplete()[2]


def test_a_run_of_burn_with_fewer_parts_is_named(tmp_path):
    """Nothing is guessed: the error says how to open such a folder."""
    burn_epoch(tmp_path, 1, names=("model", "optim"))
    with pytest.raises(CheckpointError, match=r"parts=\('model', 'optim'\)"):
        Checkpoints(tmp_path).restore()
    assert 1 == Checkpoints(tmp_path, parts=("model", "optim")).restore().epoch
    with pytest.raises(ValueError, match="parts are one or more of"):
        Checkpoints(tmp_path, parts=("policy",))


def test_an_empty_folder_has_no_epoch(tmp_path):
    """``latest`` is None, a restore is an error, and nothing is made by looking."""
    checkpoints = Checkpoints(tmp_path / "none")
    assert ([], None, {}) == (checkpoints.epochs(), checkpoints.latest(), checkpoints.incomplete())
    with pytest.raises(CheckpointError, match="has no complete epoch"):
        checkpoints.restore()
    with pytest.raises(CheckpointError, match="there is no model-5"):
        checkpoints.restore(5)
    checkpoints.delete(5)
    assert not (tmp_path / "none").exists()


def test_other_files_are_left_alone(tmp_path):
    """What is not named like ours is nobody's epoch and is never removed."""
    for name in (
        "model-.bpk",
        "model-01.bpk",
        "policy-1.bpk",
        "x.tmp",
        "model-x.bpk.1-0.tmp",
        "log",
    ):
        (tmp_path / name).write_bytes(b"mine")
    before = sorted(os.listdir(tmp_path))
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts())
    checkpoints.delete(1)
    assert before == sorted(os.listdir(tmp_path))


@pytest.mark.parametrize("lost", ["model-1.bpk", "scheduler-1.bpk"])
def test_an_epoch_with_a_lost_file_does_not_count(tmp_path, lost):
    """The marker knows what belongs to it."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts())
    (tmp_path / lost).unlink()
    assert (None, {1: f"there is no {lost}"}) == (checkpoints.latest(), checkpoints.incomplete())


def test_a_part_that_somebody_replaced_makes_a_mixture(tmp_path):
    """As when Burn is killed while it saves an epoch of ours again: three files, of two epochs."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts(1))
    burn_epoch(tmp_path, 1, 2.0, names=("model",))
    assert {1: "model-1.bpk has been replaced since it was saved with the others"} == (
        checkpoints.incomplete()
    )
    burn_epoch(tmp_path, 1, 2.0)
    assert (1, model(2)) == (checkpoints.latest(), checkpoints.restore().model)


def test_a_file_of_another_size_is_not_the_one_that_was_saved(tmp_path):
    """The message has both sizes."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts())
    with (tmp_path / "optim-1.bpk").open("ab") as file:
        file.write(b"more")
    size = len(parts()["optim"].into_bytes())
    assert {1: f"optim-1.bpk has {size + 4} bytes, saved were {size}"} == checkpoints.incomplete()


def test_a_broken_marker_does_not_count(tmp_path):
    """It may be of a save that nobody can tell."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts())
    (tmp_path / "checkpoint-1.json").write_bytes(b'{"parts": ')
    assert {1: "checkpoint-1.json is broken"} == checkpoints.incomplete()
    checkpoints.delete(1)
    assert [] == os.listdir(tmp_path)


def test_a_copied_folder_counts(tmp_path):
    """Copies are other files, all of them, and the same epochs."""
    checkpoints = Checkpoints(tmp_path / "a", ALL)
    checkpoints.save(1, **parts())
    for copy in (shutil.copy, shutil.copy2):
        shutil.copytree(tmp_path / "a", tmp_path / copy.__name__, copy_function=copy)
        assert model() == Checkpoints(tmp_path / copy.__name__).restore().model


def test_the_mode_of_a_private_checkpoint_stays(tmp_path):
    """Saved again, a file keeps its permissions (C113)."""
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts())
    (tmp_path / "model-1.bpk").chmod(0o600)
    checkpoints.save(1, **parts(2))
    assert 0o600 == (tmp_path / "model-1.bpk").stat().st_mode & 0o777


# -- what does not work changes nothing


def test_a_failing_record_leaves_the_epoch_as_it_was(tmp_path):
    """The old epoch counts, and no scratch file is left."""

    def fail():
        raise OSError("the GPU is gone")

    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **parts(1))
    before = sorted(os.listdir(tmp_path))
    broken = OptimizerRecord([Tensor.deferred("7.x", "F32", (1,), fail)])
    with pytest.raises(ProviderError, match=r"7\.x"):
        checkpoints.save(1, model=model(2), optim=broken)
    assert (before, model(1)) == (sorted(os.listdir(tmp_path)), checkpoints.restore(1).model)


@pytest.mark.parametrize("value", [object(), 3, lr.Constant(0.1)], ids=["object", "int", "lr"])
def test_a_value_of_another_kind_is_refused_before_anything_happens(tmp_path, value):
    """The error names the argument and what it takes."""
    with pytest.raises(TypeError, match="model= takes"):
        Checkpoints(tmp_path / "new").save(1, model=value)
    assert not (tmp_path / "new").exists()


def test_a_target_of_another_kind_is_refused(tmp_path):
    """A restore into what takes no record changes nothing."""
    run = Run()
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **run.parts)
    other = Run()
    before = other.state()
    with pytest.raises(TypeError, match="optim= takes"):
        checkpoints.restore(1, model=other.model, optim=object())
    assert before == other.state()


def test_a_directory_that_cannot_be_made_or_written_is_an_error(tmp_path):
    """From the system, with the path."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WriteError, match=r"cannot make .*file"):
        Checkpoints(tmp_path / "file" / "sub").save(1, model=model())
    Checkpoints(tmp_path, ALL).save(1, model=model())
    (tmp_path / "model-2.bpk").mkdir()
    with pytest.raises(WriteError, match=r"epoch 2 was saved, but .*model-2\.bpk"):
        Checkpoints(tmp_path, ALL).save(2, model=model(2))
    (tmp_path / "model-2.bpk").rmdir()
    assert model(2) == Checkpoints(tmp_path).restore(2).model
    Checkpoints(tmp_path, ALL).save(3, model=model(3))
    assert (tmp_path / "model-2.bpk").is_file()


@pytest.mark.parametrize("wrong", ["optim", "scheduler"])
def test_a_restore_that_does_not_fit_changes_nothing(tmp_path, wrong):
    """The model is taken back when the optimizer or the scheduler refuses, used or unused."""
    run = Run()
    run.epoch()
    checkpoints = Checkpoints(tmp_path, ALL)
    checkpoints.save(1, **run.parts)
    other = Run()
    other.epoch()
    targets = other.parts | {
        wrong: {"optim": optim.Lamb(other.model), "scheduler": lr.Step(0.1, 3)}[wrong]
    }
    before = other.state()
    with pytest.raises(RecordError) as caught:
        checkpoints.restore(1, **targets)
    assert [f"this is the record of the {wrong}; all parts are as they were"] == (
        caught.value.__notes__
    )
    assert before == other.state()
    fresh = Net()
    ids = {path: param.id for path, param in fresh.named_params().items()}
    with pytest.raises(RecordError):
        checkpoints.restore(1, model=fresh, optim=optim.Lamb(fresh))
    assert ids == {path: param.id for path, param in fresh.named_params().items()}
    assert not any(param.materialised for param in fresh.named_params().values())
    assert np.isfinite(fresh.first.weight.value).all()


# -- strategies and metrics


def test_the_default_keeps_the_last_two_and_the_best(tmp_path):
    """R83, over the metric ``"loss"``; other epochs go."""
    checkpoints = Checkpoints(tmp_path)
    for epoch, loss in enumerate([1.0, 3.0, 2.0, 4.0, 5.0], 1):
        checkpoints.save(epoch, model=model(epoch), metrics={"loss": loss})
    assert [1, 4, 5] == checkpoints.epochs()


def test_a_strategy_that_says_no_saves_nothing(tmp_path):
    """A metric strategy alone keeps the best epoch only, and ``save`` tells (R81)."""
    checkpoints = Checkpoints(tmp_path, Metric("acc", lowest=False))
    saved = [
        checkpoints.save(epoch, model=model(epoch), metrics={"acc": acc})
        for epoch, acc in enumerate([0.5, 0.4, 0.6], 1)
    ]
    assert ([True, False, True], [3]) == (saved, checkpoints.epochs())


def test_a_new_epoch_is_whole_before_an_old_one_goes(tmp_path, monkeypatch):
    """Also where the strategy deletes first (R81): there is an epoch at any moment."""
    checkpoints = Checkpoints(tmp_path, Metric("loss"))
    checkpoints.save(1, model=model(1), metrics={"loss": 2.0})
    seen = []
    delete = type(checkpoints._folder).delete
    monkeypatch.setattr(
        type(checkpoints._folder),
        "delete",
        lambda self, epoch: (seen.append(checkpoints.epochs()), delete(self, epoch)),
    )
    checkpoints.save(2, model=model(2), metrics={"loss": 1.0})
    assert ([[1, 2]], [2]) == (seen, checkpoints.epochs())


@pytest.mark.parametrize("stop", range(1, 8))
def test_a_strategy_remembers_across_processes(tmp_path, stop):
    """An interrupted run keeps the same epochs as one that was not (R81, R82)."""
    losses = [1.0, 3.0, 2.0, 4.0, 5.0, 0.5, 6.0, 7.0]
    kept = []
    for folder, stops in (("whole", ()), ("broken", (stop,))):
        checkpoints = Checkpoints(tmp_path / folder)
        for epoch, loss in enumerate(losses, 1):
            checkpoints.save(epoch, model=model(epoch), metrics={"loss": loss})
            if epoch in stops:
                checkpoints = Checkpoints(tmp_path / folder)
        kept.append(checkpoints.epochs())
    assert [[6, 7, 8]] * 2 == kept


def test_deletes_that_a_kill_prevented_are_made_up_for(tmp_path, monkeypatch):
    """A process that dies between save and delete leaves an epoch too many, until the next save."""
    checkpoints = Checkpoints(tmp_path, KeepLastN(1))
    checkpoints.save(1, model=model(1))
    monkeypatch.setattr(checkpoints._folder, "delete", lambda epoch: None)
    checkpoints.save(2, model=model(2))
    assert [1, 2] == checkpoints.epochs()
    Checkpoints(tmp_path, KeepLastN(1)).save(3, model=model(3))
    assert [3] == checkpoints.epochs()


def test_metrics_of_a_run_that_was_rewound_do_not_count(tmp_path):
    """Saving epoch 2 again drops what later epochs had."""
    checkpoints = Checkpoints(tmp_path, Composed(KeepLastN(1), Metric("loss")))
    for epoch, loss in enumerate([3.0, 2.0, 1.0], 1):
        checkpoints.save(epoch, model=model(epoch), metrics={"loss": loss})
    again = Checkpoints(tmp_path, Composed(KeepLastN(1), Metric("loss")))
    again.save(2, model=model(2), metrics={"loss": 2.5})
    assert {"1": {"loss": 3.0}, "2": {"loss": 2.5}} == json.loads(
        (tmp_path / "metrics.json").read_bytes()
    )


def test_a_broken_metrics_file_is_begun_anew(tmp_path):
    """It costs the memory of metrics, never a save."""
    (tmp_path / "metrics.json").write_bytes(b"{")
    assert Checkpoints(tmp_path).save(1, model=model(), metrics={"loss": float("nan")})
    assert Checkpoints(tmp_path).save(2, model=model(), metrics={"loss": 1})
    assert [1, 2] == Checkpoints(tmp_path, default_strategy()).epochs()


# -- readers beside a writer


def test_a_reader_sees_one_save_or_the_other(tmp_path, monkeypatch):
    """Opening the parts while the epoch is saved again gives parts of one save."""
    writer, reader = Checkpoints(tmp_path, ALL), Checkpoints(tmp_path)
    writer.save(1, **parts(1))
    load = OptimizerRecord.load
    times = iter([2.0, 3.0])

    def meanwhile(path, **options):
        value = next(times, None)
        if value is not None:
            writer.save(1, **parts(value))
        return load(path, **options)

    monkeypatch.setattr(OptimizerRecord, "load", meanwhile)
    found = reader.restore(1)
    assert parts(3.0) == {
        "model": found.model,
        "optim": found.optim,
        "scheduler": found.scheduler,
    }


def test_readers_change_nothing(tmp_path):
    """Looking, listing and restoring leave every file as it is, leftovers too."""
    Checkpoints(tmp_path, ALL).save(1, **parts())
    (tmp_path / "model-2.bpk.999999999-0.tmp").write_bytes(b"left")
    before = {path.name: path.stat().st_mtime_ns for path in Path(tmp_path).iterdir()}
    reader = Checkpoints(tmp_path)
    assert ([1], 1) == (reader.epochs(), reader.restore().epoch)
    assert {} == reader.incomplete()
    assert before == {path.name: path.stat().st_mtime_ns for path in Path(tmp_path).iterdir()}
