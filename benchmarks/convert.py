"""A state dict with ResNet-50's shapes through all formats, beside a plain copy of the file."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch

from benchmarks.measure import Row, compare, sync
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


def converting(folder: Path) -> list[Row]:
    """Convert ``.pt`` to ``.bpk`` to ``.safetensors`` to ``.bpk`` to ``.pt``; all durable."""
    source = folder / "r.pt"
    torch.save(resnet50(), source)
    rows = []
    for suffix in (".bpk", ".safetensors", ".2.bpk", ".2.pt"):
        target = folder / f"r{suffix}"

        def anew(target: Path = target) -> None:
            for path in (target, folder / "copy", folder / "peer"):
                path.unlink(missing_ok=True)  # what deleting costs is left out

        peers: dict[str, Callable[[], Any] | float | None] = {
            "copy of the file + fsync": lambda source=source: _copied(source, folder / "copy")
        }
        if source.suffix == ".pt":
            peers["torch.load + safetensors + fsync"] = lambda source=source: _by_torch(
                source, folder / "peer"
            )
        rows.append(
            compare(
                f"convert 102 MB, {source.suffix} to {target.suffix}",
                lambda source=source, target=target: _converted(source, target),
                peers,
                before=anew,
                bound={
                    "copy of the file + fsync": 1 / 0.7,
                    "torch.load + safetensors + fsync": 1.0,
                },
            )
        )
        _converted(source, target)
        source = target
    return rows


def _converted(source: Path, target: Path) -> None:
    with open_contents(source) as contents:
        convert(contents, format_of(str(target))).plan.write_to_file(target)


def _copied(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    sync(target)


def _by_torch(source: Path, target: Path) -> None:
    safetensors.torch.save_file(torch.load(source, weights_only=True), target)
    sync(target)
