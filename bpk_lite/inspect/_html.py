"""What notebooks show for packs, tensors, records, statistics and differences.

Self-contained, without a script, and made of metadata alone: nothing is read for it. Folding is
done by ``<details>``. Where a pack is large, a part is shown, and how much is not.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from bpk_lite.inspect._diff import Diff, describe
from bpk_lite.inspect._markup import Markup, bidi, table, tag, text
from bpk_lite.inspect._stats import TensorStats
from bpk_lite.inspect._summary import Summary, summarize
from bpk_lite.inspect._text import count, header_text, number_text, totals_text
from bpk_lite.inspect._tree import compact
from bpk_lite.pack import Reader, Tensor, TensorClosedError
from bpk_lite.pack._format import human_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpk_lite.inspect._content import Inspectable
    from bpk_lite.inspect._distribution import Histogram
    from bpk_lite.inspect._tree import Node

__all__ = ["html"]

_LINES = 1000  # of the tree
_CHILDREN = 100  # of one branch
_DEPTH = 32
_ENTRIES = 100  # of metadata, scalars, and differences
_WARNINGS = 20
_OPEN = 30  # tensors that are shown without a click

_ROOT = "font-size:13px;line-height:1.5;max-width:100%;overflow-x:auto"
_MONO = "font-family:monospace;white-space:nowrap"
_INDENT = "margin-left:1.2em"
_FAINT = "opacity:.7"
_BAR = "background:currentColor;opacity:.45;height:8px;min-width:1px"


def html(subject: Inspectable | Tensor | Summary | TensorStats | Diff) -> str:
    """Return HTML for a notebook or a page: a pack, a record, a tensor, statistics, a difference.

    It needs no script and no style sheet, follows the colour of the text around it, and holds all
    text that comes from files as text. No tensor data are read.

    Raises:
        TypeError: none of these.
    """
    if isinstance(subject, Tensor):
        return _tensor(subject)
    if isinstance(subject, TensorStats):
        return _stats(subject)
    if isinstance(subject, Diff):
        return _diff(subject)
    if isinstance(subject, Summary):
        return _summary(subject)
    try:
        return _summary(summarize(subject))
    except TensorClosedError:
        if not isinstance(subject, Reader):
            raise
        return tag("div", repr(subject), ", closed", style=_ROOT)


def _summary(summary: Summary) -> Markup:
    parts = [
        tag("div", tag("strong", bidi(summary.name)), " ", bidi(summary.kind)),
        tag("div", header_text(summary), style=_FAINT),
        tag("div", totals_text(summary)),
        _dtypes(summary),
    ]
    if summary.warnings:
        found = summary.warnings
        lines = [tag("li", bidi(f"{one.code}: {one.message}")) for one in found[:_WARNINGS]]
        lines += _more(len(found) - _WARNINGS, "li")
        parts.append(_folded(f"{count(len(found), 'warning')}", tag("ul", *lines), opened=True))
    if summary.notes:
        lines = [tag("li", bidi(note)) for note in summary.notes[:_WARNINGS]]
        lines += _more(len(summary.notes) - _WARNINGS, "li")
        parts.append(_folded(count(len(summary.notes), "note"), tag("ul", *lines), opened=True))
    if summary.metadata:
        shown = _pairs(summary.metadata, ("key", "value"))
        parts.append(_folded(f"metadata ({len(summary.metadata):,})", shown, opened=True))
    if summary.scalars:
        scalars = {key: (scalar.kind, str(scalar.value)) for key, scalar in summary.scalars.items()}
        shown = _pairs(scalars, ("name", "kind", "value#"))
        parts.append(_folded(f"scalars ({len(scalars):,})", shown, opened=True))
    if summary.rows:
        opened = len(summary.rows) <= _OPEN
        parts.append(
            _folded(f"tensors ({len(summary.rows):,})", _Tree(summary).drawn(opened), opened=True)
        )
    return tag("div", *parts, style=_ROOT)


def _dtypes(summary: Summary) -> Markup:
    if len(summary.dtypes) < 2:
        return Markup()
    parameters = summary.parameters
    whole = summary.tensor_bytes or 1
    rows = [
        (
            dtype,
            f"{number:,}",
            f"{parameters[dtype]:,}",
            human_bytes(nbytes),
            f"{nbytes / whole:.1%}",
            tag("div", style=f"{_BAR};width:{100 * nbytes / whole:.0f}px", aria_hidden="true"),
        )
        for dtype, (number, nbytes) in summary.dtypes.items()
    ]
    columns = ("dtype", "tensors#", "elements#", "bytes#", "share#", "")
    shown = table("", columns, rows[:_WARNINGS])
    return tag("div", shown, *_more(len(rows) - _WARNINGS, "div"))


def _pairs(items: Mapping[str, Any], columns: tuple[str, ...]) -> Markup:
    rows = [
        (bidi(key), *(bidi(part) for part in (value if isinstance(value, tuple) else (value,))))
        for key, value in list(items.items())[:_ENTRIES]
    ]
    return tag("div", table("", columns, rows), *_more(len(items) - _ENTRIES, "div"))


def _folded(title: str, content: Markup, *, opened: bool) -> Markup:
    """Return content under a title that folds it."""
    inner = f"<summary>{text(title)}</summary>{tag('div', content, style=_INDENT)}"
    return Markup(f"<details{' open' if opened else ''}>{inner}</details>")


def _more(left: int, name: str) -> list[Markup]:
    return [tag(name, f"… and {left:,} more", style=_FAINT)] if left > 0 else []


class _Tree:
    """The tensors as folded branches, the upper levels first where not all can be shown."""

    def __init__(self, summary: Summary) -> None:
        self._root = summary.tree()
        self._shown: set[int] = set()
        level, left, depth = [self._root], _LINES, 0
        while level and depth < _DEPTH:
            below: list[Node] = []
            for node in level:
                children = [compact(child)[1] for child in list(node.children.values())[:_CHILDREN]]
                if not children or len(children) > left:
                    continue
                left -= len(children)
                self._shown.add(id(node))
                below += children
            level, depth = below, depth + 1

    def drawn(self, opened: bool) -> Markup:
        """Return the branches below the root."""
        return self._children(self._root, opened)

    def _children(self, node: Node, opened: bool) -> Markup:
        children = list(node.children.values())
        lines = [self._node(child, opened) for child in children[:_CHILDREN]]
        rest = children[_CHILDREN:]
        if rest:
            tensors = count(sum(child.tensors for child in rest), "tensor")
            lines.append(tag("div", f"… and {len(rest):,} more ({tensors})", style=_FAINT))
        return tag("div", *lines, style=_MONO)

    def _node(self, first: Node, opened: bool) -> Markup:
        label, node = compact(first)
        parts = [bidi(label or '""')]
        if node.row is not None:
            parts.append(text(f" {node.row.dtype} {list(node.row.shape)}"))
        size = human_bytes(node.nbytes)
        if not node.children:
            return tag("div", *parts, tag("span", f" {size}", style=_FAINT))
        facts = f" {count(node.tensors, 'tensor')}, {count(node.elements, 'element')}, {size}"
        parts.append(tag("span", facts, style=_FAINT))
        if id(node) not in self._shown:
            return tag("div", *parts, tag("span", " … not shown", style=_FAINT))
        inner = tag("div", self._children(node, opened), style=_INDENT)
        head = tag("summary", *parts)
        return Markup(f"<details{' open' if opened else ''}>{head}{inner}</details>")


def _tensor(tensor: Tensor) -> Markup:
    where = "in memory"
    if tensor.source is not None:
        where = f"in {tensor.source.name}"
    elif tensor.is_deferred:
        where = "made when it is needed"
    rows = [
        ("dtype", text(tensor.dtype)),
        ("shape", text(list(tensor.shape))),
        ("elements", f"{tensor.size:,}"),
        ("bytes", f"{tensor.nbytes:,} ({human_bytes(tensor.nbytes)})"),
        ("data", bidi(where)),
    ]
    if tensor.param_id is not None:
        rows.append(("parameter id", f"{int(tensor.param_id)} ({tensor.param_id.text})"))
    title = tag("div", "Tensor ", tag("strong", bidi(tensor.name)))
    return tag("div", title, _facts(rows), style=_ROOT)


def _facts(rows: list[tuple[str, str]]) -> Markup:
    style = "text-align:left;font-weight:normal;opacity:.7;padding:1px 12px 1px 0"
    cells = [
        tag(
            "tr",
            tag("th", key, scope="row", style=style),
            tag("td", value, style="text-align:left"),
        )
        for key, value in rows
    ]
    return tag("table", tag("tbody", *cells), style="border-collapse:collapse;margin:4px 0")


def _stats(stats: TensorStats) -> Markup:
    if not stats.count:
        return tag("div", stats.note or "no elements", style=_ROOT)
    rows = [("elements", f"{stats.count:,} {stats.dtype}")]
    rows += [(key, number_text(getattr(stats, key))) for key in ("min", "max", "mean", "std")]
    rows.append(("zeros", f"{stats.zeros:,} ({stats.zeros / stats.count:.1%})"))
    if stats.finite < stats.count:
        infinite = f"{stats.infs_positive:,} of +inf, {stats.infs_negative:,} of -inf"
        rows.append(("not finite", f"{stats.nans:,} NaN, {infinite}"))
    if stats.distinct is not None:
        least = "" if stats.distinct_is_exact else "at least "
        rows.append(("different", f"{least}{stats.distinct:,}"))
    parts = [_facts(rows)]
    if stats.histogram is not None:
        parts.append(_histogram(stats.histogram))
    if stats.note:
        parts.append(tag("div", stats.note, style=_FAINT))
    return tag("div", *parts, style=_ROOT)


def _histogram(histogram: Histogram) -> Markup:
    """Draw bars from the baseline up; each tells its bin and count."""
    top = max(histogram.counts) or 1
    bars = [
        tag(
            "div",
            title=f"{low:.4g} to {high:.4g}: {number:,}",
            style=f"{_BAR};flex:1;height:{max(1 if number else 0, 60 * number / top):.1f}px",
        )
        for (low, high), number in zip(
            itertools.pairwise(histogram.edges), histogram.counts, strict=True
        )
    ]
    outside = [
        f"{number:,} {side}"
        for number, side in ((histogram.below, "below"), (histogram.above, "above"))
        if number
    ]
    low, high = number_text(histogram.edges[0]), number_text(histogram.edges[-1])
    words = f"{low} to {high}" + (f"; {', '.join(outside)}" if outside else "")
    frame = "display:flex;align-items:flex-end;height:60px;max-width:420px;gap:1px"
    return tag(
        "div",
        tag("div", *bars, style=frame, role="img", aria_label=f"histogram, {words}"),
        tag("div", words, style=_FAINT),
    )


def _diff(found: Diff) -> Markup:
    totals = ", ".join(f"{number:,} {status}" for status, number in found.counts.items() if number)
    parts = [tag("div", tag("strong", "same" if found.is_same else "different"), f": {totals}")]
    if found.kinds[0] != found.kinds[1]:
        parts.append(tag("div", bidi(" → ".join(found.kinds))))
    for title, items in (("metadata", found.metadata), ("scalars", found.scalars)):
        if items:
            shown = _pairs(
                {key: tuple("absent" if x is None else str(x) for x in pair)
                 for key, pair in items.items()},
                ("name", "first", "second"),
            )  # fmt: skip
            parts.append(_folded(f"{title} ({len(items):,})", shown, opened=True))
    rows = [row for row in found.rows if row.status != "same" or row.id_changed]
    if rows:
        lines = [(row.status, bidi(row.name), text(describe(row))) for row in rows[:_ENTRIES]]
        shown = table("", ("status", "tensor", "what"), lines)
        shown = tag("div", shown, *_more(len(rows) - _ENTRIES, "div"))
        parts.append(_folded(f"tensors ({len(rows):,})", shown, opened=True))
    return tag("div", *parts, style=_ROOT)
