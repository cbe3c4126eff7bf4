"""Train the demo's digit network on MNIST with PyTorch and write it as a burnpack.

Usage::

    python web-demo/train_mnist.py        # a quarter of an hour on two cores

The network is the one of Burn's MNIST examples, so real Burn can load the file that comes out:
the names are Burn's field names, a linear weight is stored ``[in, out]`` (PyTorch has it the other
way round), tensors are written in the order in which Burn's module declares them. Param ids are
derived from the names, so a new training gives a file with the same ids.

Seeds are fixed. The same machine and number of threads give the same weights; another processor
may round otherwise and end elsewhere, equally good.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from mnist_augment import augment
from mnist_data import load
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bpk_lite.pack import Tensor

__all__ = ["burn_tensors", "make_network", "param_id", "train"]

MODEL: Final = Path(__file__).resolve().parent / "mnist_demo" / "model.bpk"
MEAN: Final = 0.1307
DEVIATION: Final = 0.3081
BATCH: Final = 256
SEED: Final = 20260407

# Burn's path, PyTorch's key, in the order in which Burn writes them.
NAMES: Final = (
    ("conv1.conv.weight", "0.weight"),
    ("conv1.conv.bias", "0.bias"),
    ("conv1.norm.gamma", "1.weight"),
    ("conv1.norm.beta", "1.bias"),
    ("conv1.norm.running_mean", "1.running_mean"),
    ("conv1.norm.running_var", "1.running_var"),
    ("conv2.conv.weight", "4.weight"),
    ("conv2.conv.bias", "4.bias"),
    ("conv2.norm.gamma", "5.weight"),
    ("conv2.norm.beta", "5.bias"),
    ("conv2.norm.running_mean", "5.running_mean"),
    ("conv2.norm.running_var", "5.running_var"),
    ("fc1.weight", "9.weight"),
    ("fc1.bias", "9.bias"),
    ("fc2.weight", "12.weight"),
    ("fc2.bias", "12.bias"),
    ("fc3.weight", "15.weight"),
    ("fc3.bias", "15.bias"),
)


def make_network() -> nn.Sequential:
    """Build the network: images ``[n, 1, 28, 28]``, normalised, to logits ``[n, 10]``."""
    return nn.Sequential(
        nn.Conv2d(1, 64, 3),
        nn.BatchNorm2d(64, eps=1e-5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3),
        nn.BatchNorm2d(64, eps=1e-5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1600, 128),
        nn.GELU(),
        nn.Dropout(0.25),
        nn.Linear(128, 128),
        nn.GELU(),
        nn.Dropout(0.25),
        nn.Linear(128, 10),
    )


def train(epochs: int) -> nn.Sequential:
    """Train a network and return it in evaluation mode; prints a line per epoch."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(mode=True)
    random = torch.Generator().manual_seed(SEED)
    images, labels = _tensors("train")
    network = make_network().to(memory_format=torch.channels_last)
    steps = epochs * (len(images) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    for epoch in range(epochs):
        started = time.perf_counter()
        network.train()
        total = 0.0
        for picked in torch.randperm(len(images), generator=random).split(BATCH):
            if len(picked) < BATCH:
                continue
            batch = _normalise(augment(images[picked], random))
            loss = functional.cross_entropy(network(batch), labels[picked])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        seconds = time.perf_counter() - started
        right = accuracy(network)
        mean = total * epochs / steps
        print(
            f"epoch {epoch + 1:2}: loss {mean:.4f}, test {right:.2%}, {seconds:.0f} s", flush=True
        )
    return network.eval()


def accuracy(network: nn.Module) -> float:
    """Return the share of the 10 000 test images that the network names right."""
    images, labels = _tensors("test")
    network.eval()
    with torch.inference_mode():
        answers = torch.cat([network(_normalise(part)).argmax(1) for part in images.split(500)])
    return (answers == labels).float().mean().item()


def burn_tensors(state: dict[str, torch.Tensor]) -> list[Tensor]:
    """Return PyTorch's state under Burn's names, in Burn's layout and order, F32."""
    # Training needs no bpk_lite, and its result should survive whatever the writer says.
    from bpk_lite.pack import Tensor

    return [
        Tensor.from_array(name, _burn_array(state[key]), param_id=param_id(name))
        for name, key in NAMES
    ]


def param_id(name: str) -> int:
    """Return the id of the param of that name: 64 bits of the name's SHA-256."""
    digest = hashlib.sha256(f"bpk-lite mnist {name}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def _burn_array(tensor: torch.Tensor) -> NDArray[np.float32]:
    """Transpose a linear weight to ``[in, out]``; leave everything else."""
    tensor = tensor.T if tensor.ndim == 2 else tensor
    return tensor.to(torch.float32).contiguous().numpy()


def _tensors(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = load(split)
    return (
        torch.tensor(images, dtype=torch.float32)[:, None] / 255,
        torch.tensor(labels, dtype=torch.int64),
    )


def _normalise(images: torch.Tensor) -> torch.Tensor:
    return ((images - MEAN) / DEVIATION).to(memory_format=torch.channels_last)


def main() -> None:
    """Train, or take a training that was kept, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=MODEL, help="the burnpack to write")
    parser.add_argument("--keep", type=Path, help="also save PyTorch's state_dict here")
    parser.add_argument("--convert", type=Path, help="take this state_dict and do not train")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.convert:
        network = make_network()
        network.load_state_dict(torch.load(options.convert, weights_only=True))
    else:
        network = train(options.epochs)
    if options.keep:
        torch.save(network.state_dict(), options.keep)
    right = accuracy(network)
    from bpk_lite.pack import Writer

    plan = Writer(burn_tensors(network.state_dict())).plan()
    plan.write_to_file(options.out)
    print(f"{options.out}: {plan.size:,} bytes, {right:.2%} of the test images")


if __name__ == "__main__":
    main()
