"""What the commands print for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpk_lite.cli._terminal import Cell, bold, dim, put, shown, table, warn
from bpk_lite.inspect._diff import describe
from bpk_lite.inspect._text import count, header_text, number_text, totals_text
from bpk_lite.pack._format import human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bpk_lite.convert import Conversion
    from bpk_lite.inspect import Diff, Finding, Node, Summary, TensorStats

__all__ = ["show_changes", "show_diff", "show_findings", "show_summary"]


def show_summary(summary: Summary, stats: Mapping[str, TensorStats], *, as_tree: bool) -> None:
    """Print a summary: facts, metadata, scalars, tensors, totals, warnings (S223)."""
    put(bold(summary.name))
    put(shown(summary.kind))
    put(shown(header_text(summary)))
    if summary.metadata:
        rows = [(shown(key), shown(value)) for key, value in summary.metadata.items()]
        table(("metadata", ""), rows)
    if summary.scalars:
        table(
            ("scalar", "kind", "value#"),
            [(shown(key), one.kind, str(one.value)) for key, one in summary.scalars.items()],
        )
    if summary.rows:
        if as_tree:
            for line in _tree(summary, stats):
                put(*line)
        elif stats:
            _stats_table(summary, stats)
        else:
            _tensor_table(summary)
    put()
    put(shown(totals_text(summary)))
    for finding in summary.warnings:
        _show_finding(finding)
    for note in summary.notes:
        put(warn("note"), "  ", shown(note))


def _tensor_table(summary: Summary) -> None:
    rows = [
        (
            shown(row.name),
            row.dtype,
            str(list(row.shape)),
            f"{row.nbytes:,}",
            "" if row.offset is None else f"{row.offset:,}",
            "" if row.param_id is None else str(row.param_id),
        )
        for row in summary.rows
    ]
    table(("tensor", "dtype", "shape", "bytes#", "offset#", "param id#"), rows)


def _stats_table(summary: Summary, stats: Mapping[str, TensorStats]) -> None:
    rows = []
    for row in summary.rows:
        one = stats[row.name]
        numbers = (one.min, one.max, one.mean, one.std)
        told = ["" if number is None else number_text(number) for number in numbers]
        zeros = f"{one.zeros / one.count:.1%}" if one.count else ""
        rows.append(
            (shown(row.name), row.dtype, str(list(row.shape)), *told, zeros, warn(_remark(one)))
        )
    table(("tensor", "dtype", "shape", "min#", "max#", "mean#", "std#", "zeros#", ""), rows)


def _remark(stats: TensorStats) -> str:
    """Return what stands out: elements that are not finite, and why there is nothing."""
    parts = [
        f"{number:,} {what}"
        for number, what in (
            (stats.nans, "NaN"),
            (stats.infs_positive, "+inf"),
            (stats.infs_negative, "-inf"),
        )
        if number
    ]
    return ", ".join(parts + [stats.note] * bool(stats.note))


def _tree(summary: Summary, stats: Mapping[str, TensorStats]) -> Iterator[list[Cell | str]]:
    """Yield the lines of a tree; without recursion, since a path may have thousands of parts."""
    pending: list[tuple[Node, str, str]] = [(summary.tree(), "", "")]
    while pending:
        node, before, below = pending.pop()
        yield [dim(before), *_label(node, stats)]
        children = list(node.children.values())
        lines = [(child, f"{below}├── ", f"{below}│   ") for child in children[:-1]]
        lines += [(child, f"{below}└── ", f"{below}    ") for child in children[-1:]]
        pending += reversed(lines)


def _label(node: Node, stats: Mapping[str, TensorStats]) -> list[Cell | str]:
    parts: list[Cell | str] = [shown(node.label or '""')]
    if node.row is not None:
        parts.append(f"  {node.row.dtype} {list(node.row.shape)}")
    if node.children:
        parts.append(dim(f"  {count(node.tensors, 'tensor')}, {human_bytes(node.nbytes)}"))
    elif node.row is not None:
        parts.append(dim(f"  {human_bytes(node.row.nbytes)}"))
    one = stats.get(node.row.name) if node.row is not None else None
    if one is not None:
        if one.mean is not None:
            parts.append(
                f"  {number_text(one.min)} to {number_text(one.max)}, "
                f"mean {number_text(one.mean)}, std {number_text(one.std)}"
            )
        remark = _remark(one)
        parts += ["  ", warn(remark)] if remark else []
    return parts


def show_findings(file: str, findings: Sequence[Finding]) -> None:
    """Print what `verify` found, a line each, or that there is nothing."""
    for finding in findings:
        _show_finding(finding)
    number = len(findings)
    found = "one odd thing" if number == 1 else f"{number or 'no'} odd things"
    put(shown(file), f": {found}")


def _show_finding(finding: Finding) -> None:
    put(warn(finding.code), "  ", shown(finding.message))


def show_diff(found: Diff) -> None:
    """Print what differs, and how many tensors do in which way."""
    if found.kinds[0] != found.kinds[1]:
        put(shown(" → ".join(found.kinds)))
    for title, items in (("metadata", found.metadata), ("scalar", found.scalars)):
        if items:
            table(
                (title, "first", "second"),
                [
                    (shown(key), *(shown("absent" if one is None else one) for one in pair))
                    for key, pair in items.items()
                ],
            )
    rows = [
        (
            warn("id" if row.status in {"same", "unread"} else row.status),
            shown(row.name),
            shown(describe(row)),
        )
        for row in found.rows
        if row.status not in {"same", "unread"} or row.id_changed
    ]
    if rows:
        table(("", "tensor", "what"), rows)
        put()
    totals = ", ".join(f"{number:,} {status}" for status, number in found.counts.items() if number)
    verdict = "different" if found.differs else "same" if found.is_same else "same but for the data"
    put(f"{verdict}: {totals or 'no tensors'}")


def show_changes(made: Conversion) -> None:
    """Print what a conversion would do: old and new name, dtype and shape, where they differ."""
    rows = [
        (
            shown(change.old),
            shown(change.new if change.new != change.old else "="),
            _step(change.old_dtype, change.new_dtype),
            _step(str(list(change.old_shape)), str(list(change.new_shape))),
            change.module,
        )
        for change in made.changes
    ]
    table(("old", "new", "dtype", "shape", "module"), rows)
    for name in made.left_out:
        put(warn("left out"), "  ", shown(name))
    changed = sum(change.is_change for change in made.changes)
    put()
    put(
        f"{len(made.changes):,} tensors, {changed:,} changed, {len(made.left_out):,} left out; "
        f"{made.format}, {human_bytes(made.plan.size)}. Nothing was written."
    )


def _step(old: str, new: str) -> str:
    return old if old == new else f"{old} → {new}"
