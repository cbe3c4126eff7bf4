"""HTML that is safe because of how it is made: what is not `Markup` is escaped, always.

Names and values in checkpoints come from strangers. Every piece of text goes through `tag` or
`text`, which make control characters, line breaks, zero-width characters and direction overrides
visible first, then escape what HTML would act on.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from bpk_lite.pack._format import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Markup", "bidi", "joined", "table", "tag", "text"]

_LONG = 200
# Only inline styles, without a colour: notebooks strip style elements of what they do not trust,
# and what has the colour of the text is right on light and on dark.
_CELL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0"
_NUMBER = "text-align:right;vertical-align:top;padding:1px 12px 1px 0;white-space:nowrap"
_TABLE = "border-collapse:collapse;margin:4px 0;font-variant-numeric:tabular-nums"
_CAPTION = "text-align:left;font-weight:bold"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Return any text as inert HTML, cut where it is long."""
    shown = safe_text(str(value))
    if len(shown) > _LONG:
        shown = f"{shown[:_LONG]}… ({len(shown):,} characters)"
    return Markup(html.escape(shown))


def bidi(value: object) -> Markup:
    """Return text that came from a file: its direction cannot reach what stands beside it."""
    return tag("bdi", text(value))


def joined(parts: Iterable[str]) -> Markup:
    """Return the parts one behind the other, escaped where they are not markup."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def tag(name: str, *parts: str, **attributes: str) -> Markup:
    """Return an element. Attribute names may end in ``_`` where Python has a keyword."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(safe_text(value))}"'
        for key, value in attributes.items()
        if value
    )
    return Markup(f"<{name}{shown}>{joined(parts)}</{name}>")


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table with a header row. Columns whose title ends in ``#`` hold numbers."""
    styles = [_NUMBER if column.endswith("#") else _CELL for column in columns]
    head = [
        tag("th", column.rstrip("#"), scope="col", style=style) if column else tag("td")
        for column, style in zip(columns, styles, strict=True)
    ]
    body = [
        tag("tr", *(tag("td", cell, style=style) for cell, style in zip(row, styles, strict=True)))
        for row in rows
    ]
    return tag(
        "table",
        tag("caption", caption, style=_CAPTION) if caption else "",
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        style=_TABLE,
    )
