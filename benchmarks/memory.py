"""Peak memory, each case in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.measure import Row

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["memory"]

_CASES = {
    "save": ["save, safetensors", "save, torch"],
    "save from providers": [],
    "load a slice": ["load a slice, safetensors"],
    "load as copies": ["load as copies, safetensors"],
    "convert .pt": ["convert .pt, torch and safetensors"],
}


def memory(folder: Path) -> list[Row]:
    """Measure what each adds to the process, on the 312 MiB model."""
    return [
        Row(
            f"peak memory: {case}",
            _peak(case, folder),
            {peer.partition(", ")[2]: _peak(peer, folder) for peer in peers},
            unit="MiB",
        )
        for case, peers in _CASES.items()
    ]


def _peak(case: str, folder: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory_run", case, folder],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)
