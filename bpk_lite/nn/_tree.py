"""Draw a module as a tree of names, types, dtypes and shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpk_lite.nn._param import Param
from bpk_lite.nn._walk import children, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["draw"]


def draw(root: object) -> str:
    """Return the tree, a line for each module and param; params are not materialised.

    Raises:
        ValueError: If a module contains itself.
    """
    sizes = {id(leaf.param): leaf.param.size for leaf in walk(root)}
    head = f"{_title(root)}  {sum(sizes.values()):,} params"
    return "\n".join([head, *_lines(root, "")])


def _lines(node: object, indent: str) -> Iterator[str]:
    entries = [(name, value) for name, value in children(node) if _counts(value)]
    for place, (name, value) in enumerate(entries, start=1):
        last = place == len(entries)
        yield f"{indent}{'└─ ' if last else '├─ '}{name}: {_title(value)}"
        yield from _lines(value, indent + ("   " if last else "│  "))


def _counts(value: object) -> bool:
    """Whether `value` is worth a line: a module always, a container when it holds one."""
    from bpk_lite.nn._module import Module

    if isinstance(value, (Param, Module)):
        return True
    return any(_counts(inner) for _, inner in children(value))


def _title(node: object) -> str:
    from bpk_lite.nn._module import Module, Variant

    if isinstance(node, Param):
        note = " running" if node.running else "" if node.require_grad else " frozen"
        return f"{node.dtype} {list(node.shape)}{note}"
    name = type(node).__name__
    if isinstance(node, Variant):
        return f"{name} {node.name}"
    if isinstance(node, Module):
        options = node.extra_repr()
        return f"{name}({options})" if options else name
    return name
