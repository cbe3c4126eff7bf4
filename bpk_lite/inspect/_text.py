"""A summary in a few lines, for `print` and for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpk_lite.pack._format import human_bytes, safe_text

if TYPE_CHECKING:
    from bpk_lite.inspect._summary import Summary

__all__ = ["count", "header_text", "number_text", "summary_text", "totals_text"]


def count(number: int, what: str) -> str:
    """Return a number with its noun: ``"1 tensor"``, ``"1,200 tensors"``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def number_text(value: float | None) -> str:
    """Return a number in six digits, a whole one in all of its own."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def header_text(summary: Summary) -> str:
    """Return what the file is: its format, sizes and padding."""
    if summary.size is None:
        return summary.format or "in memory"
    share = summary.padding_share or 0
    return (
        f"burnpack version {summary.version}, "
        f"{human_bytes(summary.size)} ({summary.size:,} bytes); "
        f"metadata {summary.metadata_size:,} bytes, data from {summary.data_start:,}; "
        f"padding {summary.padding or 0:,} bytes ({share:.1%})"
    )


def totals_text(summary: Summary) -> str:
    """Return the totals of the tensors."""
    kinds = ", ".join(
        f"{number} x {dtype} {human_bytes(nbytes)}"
        for dtype, (number, nbytes) in summary.dtypes.items()
    )
    return (
        f"{count(len(summary.rows), 'tensor')}, {count(summary.elements, 'element')}, "
        f"{human_bytes(summary.tensor_bytes)}" + (f": {kinds}" if kinds else "")
    )


def summary_text(summary: Summary) -> str:
    """Return name, kind, header, totals, and what is odd."""
    lines = [safe_text(summary.name), safe_text(summary.kind), header_text(summary)]
    lines.append(totals_text(summary))
    if summary.metadata or summary.scalars:
        entries = f"{len(summary.metadata)} entries of metadata"
        lines.append(f"{entries}, {count(len(summary.scalars), 'scalar')}")
    lines += [f"{finding.code}: {safe_text(finding.message)}" for finding in summary.warnings[:10]]
    if len(summary.warnings) > 10:
        lines.append(f"… and {len(summary.warnings) - 10} more warnings")
    return "\n".join([*lines, *map(safe_text, summary.notes)])
