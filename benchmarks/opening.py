"""Open packs of many tensors, and read them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import cbor2
import numpy as np
import safetensors
import safetensors.numpy

import bpk_lite as bpk
from benchmarks.measure import Row, burn, compare

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["importing", "opening", "synthetic"]


def synthetic(count: int) -> bytes:
    """Return a pack of `count` tensors of 16 bytes with long ids, as real records have."""
    data = np.arange(4, dtype="<f4").tobytes()
    return bpk.save(
        [
            bpk.Tensor.from_bytes(
                f"layer.{i:06d}.weight", "F32", (4,), data, param_id=i * 0x9E3779B97F4A7C15 % 2**64
            )
            for i in range(count)
        ]
    )


def opening(folder: Path) -> list[Row]:
    """Open packs, beside SafeTensors, Burn, and a decoder alone; read all of them; save them."""
    rows: list[Row] = []
    real: dict[str, dict[str, float | None]] = {}
    for count in (100, 1_000, 10_000, 100_000):
        blob = synthetic(count)
        ours, theirs = folder / "many.bpk", folder / "many.safetensors"
        ours.write_bytes(blob)
        arrays = bpk.load(blob)
        safetensors.numpy.save_file(arrays, theirs)
        metadata = blob[10 : 10 + int.from_bytes(blob[6:10], "little")]
        real = burn("--synthetic", count)
        reads = real.get("read", {})
        runs = 100 if count <= 1_000 else 7

        def names(path: Path = ours) -> list[str]:
            with bpk.open(path) as pack:
                return list(pack)

        def their_names(path: Path = theirs) -> list[str]:
            with safetensors.safe_open(path, "numpy") as file:
                return list(file.keys())

        rows.append(
            compare(
                f"open {count:,} tensors, list names",
                names,
                {
                    "safetensors safe_open + keys": their_names,
                    "Burn": reads.get("open_from_file"),
                    "cbor2.loads of the metadata alone": lambda m=metadata: cbor2.loads(m),
                },
                runs=runs,
                bound={"safetensors safe_open + keys": 1.0, "Burn": 2.5} if count >= 1000 else {},
            )
        )
    return rows + _many(folder, real)


def _many(folder: Path, real: dict[str, dict[str, float | None]]) -> list[Row]:
    """Read and save all of the last, largest pack."""
    ours, theirs = folder / "many.bpk", folder / "many.safetensors"
    with bpk.open(ours) as pack:
        tensors = pack.tensors("data")
        return [
            compare(
                "all of 100,000 tiny tensors, from an open pack",
                pack.arrays,
                {"Burn": real["read"]["read_all_from_file"] if real else None},
                bound={"Burn": 1.0},
            ),
            compare(
                "open and load 100,000 tiny tensors",
                lambda: bpk.load_file(ours),
                {"safetensors.numpy.load_file": lambda: safetensors.numpy.load_file(theirs)},
                runs=3,
            ),
            compare(
                "save 100,000 tiny tensors, atomic and durable",
                lambda: bpk.save_file(tensors, folder / "saved.bpk"),
                {"safetensors": lambda: safetensors.numpy.save_file(pack.arrays(), theirs)},
                runs=3,
            ),
        ]


def importing() -> list[Row]:
    """Import the package in fresh interpreters, beside numpy alone."""

    def fresh(statement: str) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)

    both = compare(
        "import bpk_lite and numpy",
        lambda: fresh("import numpy, bpk_lite"),
        {
            "numpy alone": lambda: fresh("import numpy"),
            "safetensors.numpy": lambda: fresh("import safetensors.numpy"),
        },
        runs=9,
    )
    return [both]
