"""A state dict with ResNet-50's shapes through all formats, beside a plain copy of the file."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch

from benchmarks.__main__ import best, row
from bpk_lite.convert import convert, format_of, open_contents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LAYERS = ((64, 3), (128, 4), (256, 6), (512, 3))


def resnet50() -> dict[str, torch.Tensor]:
    """Return 320 tensors, 102 MB, of random values."""
    generator = torch.Generator().manual_seed(0)
    state: dict[str, torch.Tensor] = {}

    def conv(name: str, out: int, into: int, size: int) -> None:
        state[f"{name}.weight"] = torch.randn(out, into, size, size, generator=generator)

    def norm(name: str, channels: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            state[f"{name}.{part}"] = torch.rand(channels, generator=generator)
        state[f"{name}.num_batches_tracked"] = torch.tensor(7)

    conv("conv1", 64, 3, 7)
    norm("bn1", 64)
    into = 64
    for number, (width, blocks) in enumerate(LAYERS, 1):
        for block in range(blocks):
            name = f"layer{number}.{block}"
            for index, (out, size) in enumerate(((width, 1), (width, 3), (4 * width, 1)), 1):
                conv(f"{name}.conv{index}", out, into if index == 1 else width, size)
                norm(f"{name}.bn{index}", out)
            if block == 0:
                conv(f"{name}.downsample.0", 4 * width, into, 1)
                norm(f"{name}.downsample.1", 4 * width)
            into = 4 * width
    state["fc.weight"] = torch.randn(1000, into, generator=generator)
    state["fc.bias"] = torch.randn(1000, generator=generator)
    return state


def converting(folder: Path) -> list[dict[str, Any]]:
    """Convert ``.pt`` to ``.bpk`` to ``.safetensors`` to ``.bpk`` to ``.pt``; all durable."""
    source = folder / "r.pt"
    torch.save(resnet50(), source)
    rows = []
    for suffix in (".bpk", ".safetensors", ".2.bpk", ".2.pt"):
        target = folder / f"r{suffix}"
        peers: dict[str, float | None] = {
            "copy of the file + fsync": _fresh(
                lambda: _copied(source, folder / "copy"),  # noqa: B023
                folder / "copy",
            )
        }
        if source.suffix == ".pt":
            peers["torch.load + safetensors + fsync"] = _fresh(
                lambda: _by_torch(source, folder / "peer"),  # noqa: B023
                folder / "peer",
            )
        ours = _fresh(lambda: _converted(source, target), target)  # noqa: B023
        rows.append(row(f"convert 102 MB, {source.suffix} to {target.suffix}", ours, peers))
        source = target
    return rows


def _fresh(work: Callable[[], Any], target: Path) -> float:
    """Measure `work` with the cost of deleting what it wrote before left out."""
    least = float("inf")
    for _ in range(7):
        target.unlink(missing_ok=True)
        least = min(least, best(work, runs=1))
    return least


def _converted(source: Path, target: Path) -> None:
    with open_contents(source) as contents:
        convert(contents, format_of(str(target))).plan.write_to_file(target)


def _copied(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    _sync(target)


def _by_torch(source: Path, target: Path) -> None:
    safetensors.torch.save_file(torch.load(source, weights_only=True), target)
    _sync(target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
