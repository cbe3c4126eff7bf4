"""How things are measured: ours and each peer in turn, in one process, the page cache warm.

On a shared machine only ratios mean something, and only between things that were measured side by
side. So the rounds go ours, peer, peer, ours, peer, peer, and the least of each counts.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OUT", "Row", "burn", "compare", "sync"]

OUT = Path(__file__).parent / "out"
ORACLE_DIR = os.environ.get("BPK_ORACLE_DIR")


@dataclass
class Row:
    """A line of the table.

    Attributes:
        what: what is measured.
        ours: our figure.
        peers: theirs.
        unit: of the figures; less is better.
        bound: the most that ours may be in times of a peer's, by peer, where there is a goal.
    """

    what: str
    ours: float
    peers: dict[str, float] = field(default_factory=dict)
    unit: str = "ms"
    bound: dict[str, float] = field(default_factory=dict)


def compare(
    what: str,
    ours: Callable[[], Any],
    peers: dict[str, Callable[[], Any] | float | None],
    *,
    runs: int = 7,
    before: Callable[[], Any] | None = None,
    bound: dict[str, float] | None = None,
) -> Row:
    """Measure a row: the least milliseconds of `runs` rounds, the collector paused.

    Args:
        what: what is measured.
        ours: our way.
        peers: theirs; a number was measured elsewhere, None is left out.
        runs: rounds.
        before: what to do before each, unmeasured.
        bound: see `Row`.
    """
    works = {"": ours, **{name: work for name, work in peers.items() if callable(work)}}
    least = dict.fromkeys(works, float("inf"))
    gc.collect()  # once: a walk over all objects leaves none of the next one's in the cache
    gc.disable()
    try:
        for _ in range(runs):
            for name, work in works.items():
                if before is not None:
                    before()
                least[name] = min(least[name], _once(work))
    finally:
        gc.enable()
    given = {name: float(work) for name, work in peers.items() if isinstance(work, (int, float))}
    return Row(what, least.pop(""), least | given, bound=bound or {})


def _once(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    kept = work()
    taken = time.perf_counter() - start
    del kept
    return taken * 1e3


def burn(*arguments: Any) -> dict[str, dict[str, float | None]]:
    """Run real Burn's benchmark (`oracle-pack bench`); least milliseconds by part and row.

    Empty where BPK_ORACLE_DIR does not name the folder of its programs.
    """
    if not ORACLE_DIR:
        return {}
    done = subprocess.run(
        [Path(ORACLE_DIR) / "oracle-pack", "bench", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        part: {name: times.get("min") for name, times in rows.items()}
        for part, rows in json.loads(done.stdout)["ms"].items()
    }


def sync(path: Path) -> None:
    """Write a file's pages to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
