"""Tensors by the components of their dotted paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpk_lite.inspect._summary import Row

__all__ = ["Node", "tree"]


@dataclass(slots=True)
class Node:
    """A component of paths: what lies below it, and the tensor that ends here, if any.

    Attributes:
        label: the component.
        row: the tensor of exactly this path, or None.
        children: by component; numbers in numeric order, so 2 comes before 10.
        tensors: how many tensors lie at or below it.
        nbytes: their bytes.
    """

    label: str
    row: Row | None = None
    children: dict[str, Node] = field(default_factory=dict)
    tensors: int = 0
    nbytes: int = 0


def tree(rows: Iterable[Row], name: str = "") -> Node:
    """Return the root of the tree of `rows`."""
    root = Node(name)
    for row in rows:
        node = root
        _count(node, row)
        for label in row.name.split("."):
            node = node.children.setdefault(label, Node(label))
            _count(node, row)
        node.row = row
    _sort(root)
    return root


def _count(node: Node, row: Row) -> None:
    node.tensors += 1
    node.nbytes += row.nbytes


def _sort(root: Node) -> None:
    """Order all children; without recursion, since a path may have thousands of components."""
    pending = [root]
    while pending:
        node = pending.pop()
        node.children = dict(sorted(node.children.items(), key=lambda item: _natural(item[0])))
        pending.extend(node.children.values())


def _natural(label: str) -> tuple[int, int, str]:
    number = label.isascii() and label.isdigit()
    return (0, len(label.lstrip("0")), label.lstrip("0")) if number else (1, 0, label)
