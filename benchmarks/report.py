"""The table on the terminal, the JSON, and what the documentation shows of them."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.measure import Row

__all__ = ["page", "plot", "show", "to_json"]


def show(rows: list[Row]) -> None:
    """Print the table. A ratio beyond its bound is red."""
    table = Table("what", "bpk_lite", "beside", "", "ours / theirs")
    for item in rows:
        first, name = f"{item.ours:.3g} {item.unit}", item.what
        for peer, figure in item.peers.items() or [("", 0.0)]:
            ratio = item.ours / figure if figure else 0.0
            late = peer in item.bound and ratio > item.bound[peer]
            table.add_row(
                name,
                first,
                peer,
                f"{figure:.3g} {item.unit}" if figure else "",
                f"[red]{ratio:.2f}[/] (goal {item.bound[peer]:g})" if late else f"{ratio:.2f}",
            )
            first = name = ""
    Console(width=120).print(table)


def to_json(rows: list[Row], path: Path) -> None:
    """Write all figures."""
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def page(rows: list[Row], path: Path) -> None:
    """Write the table as Markdown."""
    lines = [
        "# Measured beside the peers",
        "",
        "`python -m benchmarks --docs` writes this page. Each row was measured side by side in one",
        "process: the least of several rounds, page cache warm; a ratio below 1 is less.",
        f"{platform.system()}, {platform.machine()}, Python {platform.python_version()}.",
        "",
        "![ratios to the peers](pictures/benchmarks.svg)",
        "",
        "| what | bpk_lite | beside | | ours / theirs |",
        "|---|---:|---|---:|---:|",
    ]
    for item in rows:
        first, name = f"{item.ours:.3g} {item.unit}", item.what
        for peer, figure in item.peers.items() or [("", 0.0)]:
            ratio = f"{item.ours / figure:.2f}" if figure else ""
            shown = f"{figure:.3g} {item.unit}" if figure else ""
            lines.append(f"| {name} | {first} | {peer} | {shown} | {ratio} |")
            first = name = ""
    path.write_text("\n".join(lines) + "\n")


def plot(rows: list[Row], path: Path) -> None:
    """Draw all ratios on a logarithmic axis, one bar a peer."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "bpk_lite"  # equal figures, equal files
    from matplotlib import pyplot

    bars: list[tuple[str, float]] = [
        (f"{row.what}  /  {peer}", row.ours / figure)
        for row in rows
        for peer, figure in row.peers.items()
        if figure > 0 and row.ours > 0
    ]
    figure, axes = pyplot.subplots(figsize=(9, 0.24 * len(bars) + 1))
    labels = [label for label, _ in bars]
    ratios = [ratio for _, ratio in bars]
    colours = ["#2f6f9f" if ratio <= 1 else "#c2703d" for ratio in ratios]
    axes.barh(labels, [ratio - 1 for ratio in ratios], left=1, color=colours)
    axes.set_xscale("log")
    axes.axvline(1, color="#444", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel("bpk_lite / peer: left of 1 is less time or memory")
    axes.tick_params(labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    settings: dict[str, Any] = {"metadata": {"Date": None}}
    figure.savefig(path, **settings)
    pyplot.close(figure)
