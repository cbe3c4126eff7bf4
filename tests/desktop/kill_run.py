"""A training of 20 epochs that `test_checkpoint_kill` kills: Adam and a cosine on a small model.

``python kill_run.py FOLDER`` goes on from the latest epoch there, prints ``ready``, saves each epoch
and prints ``done`` at the end.
"""

from __future__ import annotations

import sys

import numpy as np

from bpk_lite import nn, optim
from bpk_lite.desktop import Checkpoints
from bpk_lite.optim import lr

EPOCHS, STEPS = 20, 5


class Net(nn.Module):
    """Two linear layers of fixed initial values."""

    def __init__(self):
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 1)
        rng = np.random.default_rng(5)
        for param in self.named_params().values():
            param.value = rng.normal(0, 0.3, param.shape).astype("f4")

    def grads(self, x, y):
        """Return the gradients of the mean squared error by path, and the error."""
        w1, b1 = self.first.weight.value, self.first.bias.value
        w2, b2 = self.second.weight.value, self.second.bias.value
        hidden = np.tanh(x @ w1 + b1)
        error = hidden @ w2 + b2 - y
        back = (2 / len(x) * error) @ w2.T * (1 - hidden * hidden)
        return {
            "first.weight": x.T @ back,
            "first.bias": back.sum(0),
            "second.weight": hidden.T @ (2 / len(x) * error),
            "second.bias": (2 / len(x) * error).sum(0),
        }, float((error * error).mean())


def main(folder, wait=True):
    """Train from wherever the folder is; return the model's params as bytes, and the loss."""
    net = Net()
    adam = optim.Adam(net)
    schedule = lr.Cosine(0.05, EPOCHS * STEPS)
    checkpoints = Checkpoints(folder)
    done = 0
    if checkpoints.latest() is not None:
        done = checkpoints.restore(model=net, optim=adam, scheduler=schedule).epoch
    if wait:
        print("ready", flush=True)
    loss = 0.0
    for epoch in range(done + 1, EPOCHS + 1):
        rng = np.random.default_rng(epoch)
        for _ in range(STEPS):
            x = rng.normal(size=(32, 8)).astype("f4")
            grads, loss = net.grads(x, np.sin(x.sum(1, keepdims=True)))
            adam.step(grads, lr=schedule.step())
        checkpoints.save(epoch, model=net, optim=adam, scheduler=schedule, metrics={"loss": loss})
    return {path: param.value.tobytes() for path, param in net.named_params().items()}


if __name__ == "__main__":
    main(sys.argv[1])
    print("done", flush=True)
