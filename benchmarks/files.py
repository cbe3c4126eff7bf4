"""Save and load the 312 MiB model of Burn's own benchmark: 20 linear layers, 40 tensors."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

import bpk_lite as bpk
import bpk_lite.torch as bt
from benchmarks.measure import Row, burn, compare, sync
from bpk_lite.nn import Linear
from bpk_lite.store import BurnpackStore, HalfPrecisionAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["loading", "model", "saving"]

_WINDOW = 8 << 20
_ROUNDS = 7


def model() -> dict[str, np.ndarray[Any, Any]]:
    """Return the tensors."""
    rng = np.random.default_rng(0)
    return {
        f"layers.{i}.{name}": rng.standard_normal(shape, dtype=np.float32)
        for i in range(20)
        for name, shape in (("weight", (2048, 1996)), ("bias", (2048,)))
    }


def _streaming(array: np.ndarray[Any, Any]) -> Any:
    """Return a provider that copies windows, as one that reads back from a device does."""

    def provider() -> Iterator[np.ndarray[Any, Any]]:
        flat = array.reshape(-1).view(np.uint8)
        window = np.empty(_WINDOW, np.uint8)
        for start in range(0, flat.size, _WINDOW):
            part = flat[start : start + _WINDOW]
            window[: part.size] = part
            yield window[: part.size]

    return provider


def saving(folder: Path) -> list[Row]:
    """Save in place, atomically, from providers, in half precision."""
    arrays = model()
    plan = bpk.Writer(arrays).plan()
    deferred = bpk.Writer(
        [bpk.Tensor.deferred(k, "F32", a.shape, _streaming(a)) for k, a in arrays.items()]
    ).plan()
    ours, theirs, raw = folder / "m.bpk", folder / "m.safetensors", folder / "raw"
    torches = {name: torch.from_numpy(array) for name, array in arrays.items()}
    real = burn("--write-model", folder).get("write_resident", {})

    def naive() -> None:
        with raw.open("wb", buffering=0) as file:
            for array in arrays.values():
                file.write(array)
            os.fsync(file.fileno())

    def unsynced() -> None:
        with raw.open("wb", buffering=0) as file:
            for array in arrays.values():
                file.write(array)

    def safe() -> None:
        safetensors.numpy.save_file(arrays, theirs)
        sync(theirs)

    def by_torch() -> None:
        torch.save(torches, folder / "m.pt")
        sync(folder / "m.pt")

    naive()
    layers = {f"layers.{i}": Linear(2048, 1996) for i in range(2)}
    net = _Net(list(layers.values()))
    return [
        compare(
            "save 312 MiB, atomic and durable",
            lambda: plan.write_to_file(ours),
            {
                "naive write + fsync": naive,
                "safetensors.numpy + fsync": safe,
                "torch.save + fsync": by_torch,
                "Burn": real.get("write_to_file"),
            },
            runs=_ROUNDS,
            bound={"naive write + fsync": 1.0, "safetensors.numpy + fsync": 1.0, "Burn": 1.0},
        ),
        compare(
            "the same from providers, by windows",
            lambda: deferred.write_to_file(ours),
            {"naive write + fsync": naive},
            runs=_ROUNDS,
        ),
        compare(
            "save 312 MiB in place, not synced",
            lambda: plan.write_to_file_in_place(ours),
            {
                "write, not synced": unsynced,
                "safetensors.numpy": lambda: safetensors.numpy.save_file(arrays, theirs),
                "np.savez": lambda: np.savez(folder / "m.npz", **arrays),
                "Burn": real.get("write_to_file_in_place"),
                "file copy": lambda: shutil.copyfile(raw, folder / "copy"),
            },
            runs=_ROUNDS,
        ),
        compare(
            "collect 31 MiB in half precision, durable",
            lambda: BurnpackStore(
                folder / "half", to_adapter=HalfPrecisionAdapter(), overwrite=True
            ).collect_from(net),
            {
                "the same in full precision": lambda: BurnpackStore(
                    folder / "full", overwrite=True
                ).collect_from(net)
            },
            runs=_ROUNDS,
        ),
    ]


class _Net(bpk.nn.Module):
    def __init__(self, layers: list[Linear]) -> None:
        self.layers = layers


def loading(folder: Path) -> list[Row]:
    """Load as views, as copies, one tensor, a slice; the page cache is warm."""
    ours, theirs, pickled = folder / "m.bpk", folder / "m.safetensors", folder / "m.pt"
    real = burn(ours).get("read", {})
    size = ours.stat().st_size
    touched = {name: np.zeros_like(array) for name, array in bpk.load_file(ours).items()}
    whole = np.ones(size, np.uint8)
    target = np.ones(size, np.uint8)

    def read_fresh() -> Any:
        fresh = np.empty(size, np.uint8)
        with ours.open("rb", buffering=0) as file:
            file.readinto(memoryview(fresh))
        return fresh

    def each_in_turn() -> None:
        with bpk.open(ours) as pack:
            for tensor in pack.values():
                np.array(tensor.numpy())

    def rows_of_one() -> Any:
        with bpk.open(ours) as pack:
            return np.array(pack["layers.7.weight"][100:110])

    def their_rows() -> Any:
        with safetensors.safe_open(theirs, "numpy") as file:
            return file.get_slice("layers.7.weight")[100:110]

    def one() -> Any:
        with bpk.open(ours) as pack:
            return np.array(pack["layers.7.weight"])

    def their_one() -> Any:
        with safetensors.safe_open(theirs, "numpy") as file:
            return file.get_tensor("layers.7.weight")

    return [
        compare(
            "load 312 MiB as views",
            lambda: bpk.load_file(ours),
            {
                "safetensors.numpy.load_file": lambda: safetensors.numpy.load_file(theirs),
                "safetensors.torch.load_file": lambda: safetensors.torch.load_file(theirs),
                "torch.load, mmap": lambda: torch.load(pickled, mmap=True, weights_only=True),
            },
            bound={"safetensors.numpy.load_file": 0.02},
        ),
        compare(
            "load 312 MiB as torch tensors",
            lambda: bt.load_file(ours),
            {"safetensors.torch.load_file": lambda: safetensors.torch.load_file(theirs)},
        ),
        compare(
            "load 312 MiB as copies",
            lambda: bpk.load_file(ours, copy=True),
            {
                "readinto fresh memory": read_fresh,
                "safetensors.numpy.load_file": lambda: safetensors.numpy.load_file(theirs),
                "torch.load": lambda: torch.load(pickled, weights_only=True),
            },
            bound={"readinto fresh memory": 1.0},
        ),
        compare(
            "copy each of its tensors out in turn",
            each_in_turn,
            {"Burn, read all": real.get("read_all_from_file")},
            bound={"Burn, read all": 1.0},
        ),
        compare(
            "load 312 MiB into given arrays",
            lambda: bpk.load_file(ours, out=touched),
            {
                "Burn, read all": real.get("read_all_from_file"),
                "memcpy into touched memory": lambda: np.copyto(target, whole),
            },
            bound={"Burn, read all": 1.0},
        ),
        compare("open, copy one tensor of 16 MB", one, {"safetensors": their_one}),
        compare(
            "open, copy 10 of its 2048 rows", rows_of_one, {"safetensors get_slice": their_rows}
        ),
    ]
