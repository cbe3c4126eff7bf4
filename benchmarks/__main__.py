"""Run all benchmarks in one go: ``make bench``, or ``python -m benchmarks [--docs] [PART…]``.

Parts are opening, saving (which loading and memory need), loading, memory, converting, importing.
Real Burn takes part where BPK_ORACLE_DIR names the folder of its programs. ``--docs`` writes the
page and the picture of the documentation.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.convert import converting
from benchmarks.files import loading, saving
from benchmarks.measure import OUT
from benchmarks.memory import memory
from benchmarks.opening import importing, opening
from benchmarks.report import page, plot, show, to_json

DOCS = Path(__file__).resolve().parents[1] / "docs"
PARTS = {
    "opening": opening,
    "saving": saving,
    "loading": loading,
    "memory": memory,
    "converting": converting,
    "importing": lambda _folder: importing(),
}


def main(arguments: list[str]) -> None:
    """Measure, print the table, write the JSON."""
    chosen = [part for part in arguments if part != "--docs"] or list(PARTS)
    OUT.mkdir(exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        for part in chosen:
            print(f"== {part}", flush=True)
            rows += PARTS[part](Path(folder))
    show(rows)
    to_json(rows, OUT / "benchmarks.json")
    if "--docs" in arguments:
        (DOCS / "pictures").mkdir(exist_ok=True)
        page(rows, DOCS / "benchmarks.md")
        plot(rows, DOCS / "pictures" / "benchmarks.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
