"""Tensors by the components of their dotted paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bpk_lite.inspect._collector import collector_paused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpk_lite.inspect._summary import Row

__all__ = ["Node", "compact", "tree"]

_DEEPEST = 64


@dataclass(slots=True)
class Node:
    """A component of paths: what lies below it, and the tensor that ends here, if any.

    Attributes:
        label: the component.
        row: the tensor of exactly this path, or None.
        children: by component; numbers in numeric order, so 2 comes before 10.
        tensors: how many tensors lie at or below it.
        nbytes: their bytes.
        elements: their elements.
    """

    label: str
    row: Row | None = None
    children: dict[str, Node] = field(default_factory=dict)
    tensors: int = 0
    nbytes: int = 0
    elements: int = 0


def tree(rows: Iterable[Row], name: str = "") -> Node:
    """Return the root of the tree of `rows`, at most 64 levels deep.

    What a longer path has beyond them stays one component. No model comes near, but a name of a
    million dots does, and taking so deep a tree apart again would end the interpreter.
    """
    root = Node(name)
    with collector_paused():
        for row in rows:
            node = root
            _count(node, row)
            for label in row.name.split(".", _DEEPEST - 1):
                child = node.children.get(label)
                if child is None:
                    child = node.children[label] = Node(label)
                node = child
                _count(node, row)
            node.row = row
        _sort(root)
    return root


def compact(node: Node) -> tuple[str, Node]:
    """Return the label of a branch down to where it parts, ``"encoder.layers"``, and that node."""
    labels = [node.label]
    while len(node.children) == 1 and node.row is None:
        (node,) = node.children.values()
        labels.append(node.label)
    return ".".join(labels), node


def _count(node: Node, row: Row) -> None:
    node.tensors += 1
    node.nbytes += row.nbytes
    node.elements += row.elements


def _sort(root: Node) -> None:
    """Order all children; without recursion, since a path may have thousands of components."""
    pending = [root]
    while pending:
        node = pending.pop()
        if not node.children:
            continue
        node.children = dict(sorted(node.children.items(), key=lambda item: _natural(item[0])))
        pending.extend(node.children.values())


def _natural(label: str) -> tuple[int, int, str]:
    number = label.isascii() and label.isdigit()
    return (0, len(label.lstrip("0")), label.lstrip("0")) if number else (1, 0, label)
