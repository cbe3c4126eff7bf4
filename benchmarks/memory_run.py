"""Do one thing and print how far it lifted the process's peak memory, in MiB.

``python -m benchmarks.memory_run CASE FOLDER``, where ``m.bpk``, ``m.safetensors``, ``m.pt`` are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch

import bpk_lite as bpk
from benchmarks.files import _streaming
from bpk_lite.convert import convert, open_contents


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise AssertionError(field)


def main(case: str, folder: Path) -> None:
    """Run a case."""
    ours, theirs, pickled = folder / "m.bpk", folder / "m.safetensors", folder / "m.pt"
    out = folder / "memory"
    shared = np.ones((2048, 1996), "<f4")
    arrays = {f"layers.{i}": shared for i in range(20)}
    tensors = [bpk.Tensor.deferred(k, "F32", a.shape, _streaming(a)) for k, a in arrays.items()]
    torch.zeros(1)
    Path("/proc/self/clear_refs").write_text("5")
    before = _resident("VmRSS")
    if case == "save":
        bpk.save_file(arrays, out)
    elif case == "save, safetensors":
        safetensors.numpy.save_file(arrays, out)
    elif case == "save, torch":
        torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, out)
    elif case == "save from providers":
        bpk.save_file(tensors, out)
    elif case == "load a slice":
        with bpk.open(ours, backend="read") as pack:
            pack["layers.7.weight"][100:110].sum()
    elif case == "load a slice, safetensors":
        with safetensors.safe_open(theirs, "numpy") as file:
            file.get_slice("layers.7.weight")[100:110].sum()
    elif case == "load as copies":
        kept = bpk.load_file(ours, copy=True)
        kept.clear()
    elif case == "load as copies, safetensors":
        kept = safetensors.numpy.load_file(theirs)
        kept.clear()
    elif case == "convert .pt":
        with open_contents(pickled) as contents:
            convert(contents, "burnpack").plan.write_to_file(out)
    elif case == "convert .pt, torch and safetensors":
        loaded = torch.load(pickled, weights_only=True)
        safetensors.numpy.save_file({k: v.numpy() for k, v in loaded.items()}, out)
    else:
        raise ValueError(case)
    print((_resident("VmHWM") - before) / 1024)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
