"""Run all benchmarks: opening, saving, loading, converting, importing.

Each row is measured beside its peers in the same process, minimum of several runs with the page
cache warm, since only ratios mean something on a shared machine. Real Burn takes part where
BPK_ORACLE_DIR names the folder of its programs.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cbor2
import numpy as np
import safetensors.numpy
from rich.console import Console
from rich.table import Table

import bpk_lite as bpk

if TYPE_CHECKING:
    from collections.abc import Callable

OUT = Path(__file__).parent / "out"
ORACLE_DIR = os.environ.get("BPK_ORACLE_DIR")


def best(work: Callable[[], Any], *, runs: int = 7) -> float:
    """Return the least milliseconds of `runs` calls, the collector paused."""
    least = float("inf")
    for _ in range(runs):
        gc.collect()
        gc.disable()
        try:
            start = time.perf_counter()
            kept = work()
            least = min(least, time.perf_counter() - start)
        finally:
            gc.enable()
        del kept
    return least * 1e3


def burn(*arguments: Any) -> dict[str, Any]:
    """Run oracle-pack's benchmark of real Burn; empty where it is not at hand."""
    if not ORACLE_DIR:
        return {}
    done = subprocess.run(
        [Path(ORACLE_DIR) / "oracle-pack", "bench", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["ms"]


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


def opening() -> list[dict[str, Any]]:
    """Open packs of many tensors, beside decoding their metadata and beside Burn."""
    rows = []
    for count in (100, 1_000, 10_000, 100_000):
        blob = synthetic(count)
        metadata = blob[10 : 10 + int.from_bytes(blob[6:10], "little")]
        ours = best(lambda: bpk.Reader.from_bytes(blob))  # noqa: B023
        loads = best(lambda: cbor2.loads(metadata))  # noqa: B023
        real = burn("--synthetic", count).get("read", {}).get("open_from_bytes", {}).get("min")
        rows.append(
            row(
                f"open {count:,} tensors",
                ours,
                {"cbor2.loads of its metadata": loads, "Burn": real},
            )
        )
    return rows


def model() -> dict[str, np.ndarray[Any, Any]]:
    """Return the 312 MiB model of Burn's own benchmark: 20 linear layers."""
    rng = np.random.default_rng(0)
    return {
        f"layers.{i}.{name}": rng.standard_normal(shape, dtype=np.float32)
        for i in range(20)
        for name, shape in (("weight", (2048, 1996)), ("bias", (2048,)))
    }


def files(folder: Path) -> list[dict[str, Any]]:
    """Save and load 312 MiB, beside safetensors, a naive write, and Burn."""
    tensors = model()
    plan = bpk.Writer(tensors).plan()
    path, other, raw = folder / "m.bpk", folder / "m.safetensors", folder / "raw"

    def naive() -> None:
        with raw.open("wb", buffering=0) as file:
            for array in tensors.values():
                file.write(array)
            os.fsync(file.fileno())

    def safe_save() -> None:
        safetensors.numpy.save_file(tensors, other)
        descriptor = os.open(other, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    real = burn("--write-model", folder)
    writes, reads = real.get("write_resident", {}), real.get("read", {})
    peers = {
        "naive write + fsync": best(naive, runs=5),
        "safetensors + fsync": best(safe_save, runs=5),
    }
    target = bytearray(plan.size)
    touched = {name: np.zeros_like(array) for name, array in tensors.items()}
    return [
        row(
            "save 312 MiB, atomic and durable",
            best(lambda: plan.write_to_file(path), runs=5),
            {**peers, "Burn": _min(writes, "write_to_file")},
        ),
        row(
            "save 312 MiB in place",
            best(lambda: plan.write_to_file_in_place(path), runs=5),
            {"Burn": _min(writes, "write_to_file_in_place")},
        ),
        row(
            "312 MiB into a buffer",
            best(lambda: plan.write_into(target), runs=5),
            {"Burn": _min(writes, "write_into")},
        ),
        row(
            "312 MiB into new bytes",
            best(plan.into_bytes, runs=5),
            {"Burn": _min(writes, "into_bytes")},
        ),
        row(
            "load 312 MiB as views",
            best(lambda: bpk.load_file(path)),
            {"safetensors (copies)": best(lambda: safetensors.numpy.load_file(other), runs=3)},
        ),
        row(
            "load 312 MiB into given arrays",
            best(lambda: bpk.load_file(path, out=touched), runs=5),
            {"Burn, read all": _min(reads, "read_all_from_file")},
        ),
    ]


def importing() -> list[dict[str, Any]]:
    """Import the package in fresh interpreters, beside numpy alone."""

    def fresh(statement: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", statement], check=True), runs=9)

    bare = fresh("import numpy")
    return [row("import bpk_lite, beyond numpy", fresh("import numpy, bpk_lite") - bare, {})]


def _min(values: dict[str, Any], key: str) -> float | None:
    return values.get(key, {}).get("min")


def row(what: str, ours: float, peers: dict[str, float | None]) -> dict[str, Any]:
    """Return one line of the table."""
    return {"what": what, "ours": ours, "peers": {k: v for k, v in peers.items() if v is not None}}


def main() -> None:
    """Measure everything, print the table, write the JSON."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        from benchmarks.convert import converting

        rows = [*opening(), *files(Path(folder)), *converting(Path(folder)), *importing()]
    table = Table("what", "bpk_lite, ms", "beside", "ms", "ours / theirs")
    for item in rows:
        first, name = f"{item['ours']:.3g}", item["what"]
        for peer, milliseconds in item["peers"].items() or [("", None)]:
            ratio = "" if milliseconds is None else f"{item['ours'] / milliseconds:.2f}"
            table.add_row(name, first, peer, f"{milliseconds:.3g}" if milliseconds else "", ratio)
            first = name = ""
    Console(width=110).print(table)
    (OUT / "benchmarks.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
