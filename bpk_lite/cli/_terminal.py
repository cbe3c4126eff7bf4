"""Tables, trees and a little emphasis on the terminal, for a hundred thousand rows as for ten.

Every cell is one line and every column as wide as its widest cell, so that grep, awk and cut work;
a terminal wraps what is too wide. Text from files goes through `shown`: it cannot leave its cell.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TYPE_CHECKING, Self

from bpk_lite.pack._format import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Cell", "bold", "dim", "put", "shown", "table", "warn"]

_LONG = 200
_WIDE = {"W", "F"}
_UNSEEN = {"Mn", "Me"}


class Cell(str):
    """A text that is safe to print; `width` is how many columns it takes."""

    __slots__ = ("style",)

    style: str

    def __new__(cls, text: str, style: str = "") -> Self:
        made = super().__new__(cls, text)
        made.style = style
        return made

    @property
    def width(self) -> int:
        """Columns that the text takes: none for marks that combine, two for wide characters."""
        if self.isascii():
            return len(self)
        return sum(
            0
            if unicodedata.category(char) in _UNSEEN
            else 2
            if unicodedata.east_asian_width(char) in _WIDE
            else 1
            for char in self
        )

    def styled(self) -> str:
        """Return it with its emphasis, where the terminal shows any."""
        return f"\x1b[{self.style}m{self}\x1b[0m" if self.style and self and _in_style() else self


def _in_style() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.name == "posix"


def shown(value: object, style: str = "") -> Cell:
    """Return any text as a cell: what a terminal would act on is escaped, what is long is cut."""
    text = safe_text(str(value))
    if len(text) > _LONG:
        text = f"{text[:_LONG]}… ({len(text)} characters)"
    return Cell(text, style)


def bold(value: object) -> Cell:
    """Return text that stands out."""
    return shown(value, "1")


def dim(value: object) -> Cell:
    """Return text that stands back."""
    return shown(value, "2")


def warn(value: object) -> Cell:
    """Return text that warns."""
    return shown(value, "33")


def put(*cells: Cell | str) -> None:
    """Print cells side by side on a line. A plain string is ours, not a file's."""
    line = "".join(cell.styled() if isinstance(cell, Cell) else cell for cell in cells)
    sys.stdout.write(f"{line.rstrip()}\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell | str]]) -> None:
    """Print a table. Columns whose title ends in ``#`` hold numbers and are set to the right."""
    right = [column.endswith("#") for column in columns]
    head = [bold(column.rstrip("#")) for column in columns]
    body = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    widths = [cell.width for cell in head]
    for row in body:
        widths = [max(width, cell.width) for width, cell in zip(widths, row, strict=True)]
    put()
    for row in (head, [Cell("─" * width) for width in widths], *body):
        parts = []
        for cell, width, to_right in zip(row, widths, right, strict=True):
            gap = " " * (width - cell.width)
            parts.append(gap + cell.styled() if to_right else cell.styled() + gap)
        put("  ".join(parts))
