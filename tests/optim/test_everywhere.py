"""One whole turn of training on bytes alone: what a notebook in a browser does."""

from __future__ import annotations

import numpy as np

from bpk_lite import nn, optim
from bpk_lite.records import ModuleRecord, OptimizerRecord


class Net(nn.Module):
    """Two layers."""

    def __init__(self):
        self.fc1 = nn.Linear(3, 4)
        self.act = nn.Relu()
        self.fc2 = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


def gradients(net, x, y):
    """Return the loss and its gradients, by hand."""
    hidden = net.fc1(x)
    active = np.maximum(hidden, 0)
    error = net.fc2(active) - y
    out = 2 * error / error.size
    back = (out @ net.fc2.weight.value.T) * (hidden > 0)
    return float(np.mean(error * error)), {
        "fc1.weight": x.T @ back,
        "fc1.bias": back.sum(axis=0),
        "fc2.weight": active.T @ out,
        "fc2.bias": out.sum(axis=0),
    }


def test_training_goes_on_from_bytes():
    """Module and optimizer, saved to bytes and loaded into fresh ones, end at the same params."""
    nn.manual_seed(0)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((8, 3), "f4"), rng.standard_normal((8, 2), "f4")
    net = Net()
    adam, schedule = optim.AdamW(net), optim.lr.Cosine(0.1, 20)
    first, _ = gradients(net, x, y)
    for _ in range(5):
        adam.step(gradients(net, x, y)[1], lr=schedule.step())
    module, state = net.into_record().into_bytes(), adam.into_record().into_bytes()
    progress = schedule.into_record().into_bytes()

    other = Net()
    other.load_record(ModuleRecord.from_bytes(module))
    resumed, rates = optim.AdamW(other), optim.lr.Cosine(0.1, 20)
    resumed.load_record(OptimizerRecord.from_bytes(state))
    rates.load_record(type(schedule.into_record()).from_bytes(progress))
    for _ in range(5):
        adam.step(gradients(net, x, y)[1], lr=schedule.step())
        resumed.step(gradients(other, x, y)[1], lr=rates.step())
    assert net.into_record() == other.into_record()
    assert adam.into_record() == resumed.into_record()
    assert gradients(other, x, y)[0] < first / 2
