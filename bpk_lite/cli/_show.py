"""Tables and trees on the terminal, by rich. Text from files is never markup and always escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from bpk_lite.inspect import tree
from bpk_lite.pack._format import human_bytes, safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpk_lite.convert import Conversion
    from bpk_lite.inspect import Finding, Node, Summary

__all__ = ["show_changes", "show_findings", "show_summary"]

# A pipe has no width: rows stay on one line each there, for grep and awk.
_PIPE_WIDTH = 10_000
_LONG = 200


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def _text(value: object, style: str = "") -> Text:
    shown = safe_text(str(value))
    if len(shown) > _LONG:
        shown = f"{shown[:_LONG]}… ({len(shown)} characters)"
    return Text(shown, style)


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title, side in columns:
        table.add_column(title, justify="right" if side == "right" else "left", overflow="fold")
    return table


def show_summary(summary: Summary, *, as_tree: bool) -> None:
    """Print a summary: facts, metadata, scalars, tensors, totals (S223)."""
    console = _console()
    console.print(_text(summary.name, "bold"))
    console.print(_text(summary.kind))
    console.print(
        f"burnpack version {summary.version}, "
        f"{human_bytes(summary.size)} ({summary.size:,} bytes); "
        f"metadata {summary.metadata_size:,} bytes, data from {summary.data_start:,}"
    )
    if summary.metadata:
        table = _table(("metadata", "left"), ("", "left"))
        for key, value in summary.metadata.items():
            table.add_row(_text(key), _text(value))
        console.print(table)
    if summary.scalars:
        table = _table(("scalar", "left"), ("kind", "left"), ("value", "right"))
        for key, scalar in summary.scalars.items():
            table.add_row(_text(key), scalar.kind, str(scalar.value))
        console.print(table)
    if summary.rows:
        console.print(_tree(summary) if as_tree else _rows(summary))
    kinds = ", ".join(
        f"{count} x {dtype} {human_bytes(nbytes)}"
        for dtype, (count, nbytes) in summary.dtypes.items()
    )
    console.print(
        f"{len(summary.rows):,} tensors, {summary.elements:,} elements, "
        f"{human_bytes(summary.tensor_bytes)}" + (f": {kinds}" if kinds else "")
    )


def _rows(summary: Summary) -> Table:
    table = _table(
        ("tensor", "left"),
        ("dtype", "left"),
        ("shape", "left"),
        ("bytes", "right"),
        ("offset", "right"),
        ("param id", "right"),
    )
    for row in summary.rows:
        table.add_row(
            _text(row.name),
            row.dtype,
            str(list(row.shape)),
            f"{row.nbytes:,}",
            f"{row.offset:,}",
            "" if row.param_id is None else str(int(row.param_id)),
        )
    return table


def _tree(summary: Summary) -> Tree:
    root = tree(summary.rows, summary.name)
    drawn = Tree(_label(root), guide_style="dim")
    pending = [(root, drawn)]
    while pending:
        node, branch = pending.pop()
        pending += [(child, branch.add(_label(child))) for child in node.children.values()]
    return drawn


def _label(node: Node) -> Text:
    label = _text(node.label or '""')
    if node.row is not None:
        label.append(f"  {node.row.dtype} {list(node.row.shape)}", "cyan")
    if node.children:
        count = f"{node.tensors} tensor{'' if node.tensors == 1 else 's'}"
        label.append(f"  {count}, {human_bytes(node.nbytes)}", "dim")
    elif node.row is not None:
        label.append(f"  {human_bytes(node.row.nbytes)}", "dim")
    return label


def show_findings(file: str, findings: Sequence[Finding]) -> None:
    """Print what `verify` found, a line each, or that there is nothing."""
    console = _console()
    for finding in findings:
        console.print(Text.assemble((finding.code, "yellow"), "  ", _text(finding.message)))
    count = len(findings)
    found = "one odd thing" if count == 1 else f"{count or 'no'} odd things"
    console.print(_text(f"{file}: {found}"))


def show_changes(made: Conversion) -> None:
    """Print what a conversion would do: old and new name, dtype and shape, where they differ."""
    table = _table(
        ("old", "left"), ("new", "left"), ("dtype", "left"), ("shape", "left"), ("module", "left")
    )
    for change in made.changes:
        table.add_row(
            _text(change.old),
            _text(change.new if change.new != change.old else "="),
            _step(change.old_dtype, change.new_dtype),
            _step(str(list(change.old_shape)), str(list(change.new_shape))),
            change.module,
        )
    console = _console()
    console.print(table)
    for name in made.left_out:
        console.print(Text.assemble(("left out  ", "yellow"), _text(name)))
    changed = sum(change.is_change for change in made.changes)
    console.print(
        f"{len(made.changes):,} tensors, {changed:,} changed, {len(made.left_out):,} left out; "
        f"{made.format}, {human_bytes(made.plan.size)}. Nothing was written."
    )


def _step(old: str, new: str) -> str:
    return old if old == new else f"{old} → {new}"
