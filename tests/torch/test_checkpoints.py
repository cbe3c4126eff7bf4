"""Torch modules, optimizers and schedulers in `Checkpoints`, as a unit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import bpk_lite.torch as bt
from bpk_lite.desktop import AsyncCheckpointer, Checkpoints, FileCheckpointer
from bpk_lite.pack import ProviderError, RecordError


class Run:
    """A training in torch."""

    def __init__(self):
        self.model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optim, 20)

    @property
    def parts(self):
        return {"model": self.model, "optim": self.optim, "scheduler": self.scheduler}

    def epoch(self, seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(3):
            self.optim.zero_grad()
            self.model(torch.randn(8, 3, generator=generator)).square().mean().backward()
            self.optim.step()
        self.scheduler.step()

    def state(self):
        return (
            bt.into_record(self.model).into_bytes(),
            bt.optim_into_record(self.optim, self.model).into_bytes(),
            bt.scheduler_into_record(self.scheduler).into_bytes(),
            self.optim.param_groups[0]["lr"],
        )


def test_a_training_in_torch_resumes(tmp_path):
    """A new process goes on with the same bits, in names that Burn reads (R60, R75)."""
    run, other = Run(), Run()
    checkpoints = Checkpoints(tmp_path)
    for epoch in (1, 2, 3):
        run.epoch(epoch)
        checkpoints.save(epoch, **run.parts)
    restored = Checkpoints(tmp_path).restore(**other.parts)
    assert 3 == restored.epoch
    assert "1.gamma" in restored.model.tensors
    for epoch in (4, 5):
        run.epoch(epoch)
        other.epoch(epoch)
    *params, lr = run.state()
    *found, found_lr = other.state()
    weights = (nn.utils.parameters_to_vector(each.model.parameters()) for each in (run, other))
    assert torch.equal(*weights)
    assert params[1:] == found[1:]
    assert lr == pytest.approx(found_lr, rel=1e-12)


@pytest.mark.parametrize("wrong", ["optim", "scheduler"])
def test_a_restore_that_does_not_fit_changes_nothing(tmp_path, wrong):
    """The module, its ids, the optimizer and the rate are taken back."""
    run, other = Run(), Run()
    run.epoch(1)
    Checkpoints(tmp_path).save(1, **run.parts)
    other.epoch(2)
    targets = other.parts | {
        wrong: {
            "optim": torch.optim.Adagrad(other.model.parameters()),
            "scheduler": torch.optim.lr_scheduler.StepLR(
                torch.optim.SGD(other.model.parameters(), lr=0.1), 3
            ),
        }[wrong]
    }
    before = other.state()
    with pytest.raises(RecordError) as caught:
        Checkpoints(tmp_path).restore(1, **targets)
    assert "all parts are as they were" in caught.value.__notes__[0]
    assert before == other.state()


def test_an_optimizer_of_torch_needs_its_module(tmp_path):
    """Ids and layouts come from there."""
    run = Run()
    with pytest.raises(TypeError, match="needs its torch module, given as model="):
        Checkpoints(tmp_path).save(1, optim=run.optim)
    Checkpoints(tmp_path).save(1, **run.parts)
    with pytest.raises(TypeError, match="needs its torch module"):
        Checkpoints(tmp_path).restore(1, optim=run.optim)


def test_a_background_save_that_a_step_overtakes_is_an_error(tmp_path):
    """Parameters change in place in torch: a copy is saved, anything else fails, never a mixture."""
    run = Run()
    checkpointer = AsyncCheckpointer(FileCheckpointer(tmp_path, "model"))
    record = bt.into_record(run.model)
    copied = bt.into_record(run.model, copy=True)
    expected = record.into_bytes()
    run.epoch(1)
    checkpointer.save(1, record)
    with pytest.raises(ProviderError, match="copy=True"):
        checkpointer.save(2, copied)
    checkpointer.save(2, copied)
    checkpointer.close()
    assert expected == (tmp_path / "model-2.bpk").read_bytes()
    assert not (tmp_path / "model-1.bpk").exists()
