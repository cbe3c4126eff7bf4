"""How a module is traversed: the one place that knows which fields count and what they are called.

=====================  ==========================================  ==============
what a field holds     contributes                                 path component
=====================  ==========================================  ==============
`Param`                itself, then its LoRA adapter (R18)         field; field, lora
`Module`               its fields, in order of first assignment    the field
`Variant`              the module in it                            field, variant
list, tuple            its elements                                index from 0
dict with text keys    its values                                  the key
None, anything else    nothing                                     none
=====================  ==========================================  ==============

That is R14 to R17; dicts are ours, Burn has none. A module may name its fields otherwise in the
file, or leave them out, by the class attribute ``field_names``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpk_lite.nn._param import Param

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Leaf", "children", "named_params", "walk"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A param as the traversal meets it.

    Attributes:
        path: the dotted path; empty when the root itself is the param.
        param: the param.
    """

    path: str
    param: Param


def children(node: object) -> Iterator[tuple[str, object]]:
    """Yield the path component and the value of everything in `node` that may hold params."""
    from bpk_lite.nn._module import Module, Variant

    if isinstance(node, Variant):
        yield node.name, node.module
    elif isinstance(node, Module):
        names = node.field_names
        for field, value in _fields(node):
            component = names.get(field, field)
            if component is not None:
                yield component, value
    elif isinstance(node, Param):
        if node.adapter is not None:
            yield "lora", node.adapter
    elif isinstance(node, (list, tuple)):
        yield from ((str(index), value) for index, value in enumerate(node))
    elif isinstance(node, dict):
        yield from ((key, value) for key, value in node.items() if isinstance(key, str))


def walk(root: object) -> Iterator[Leaf]:
    """Yield every param below `root` in traversal order, once for each path that leads to it (R19).

    Raises:
        ValueError: If a module contains itself.
    """
    yield from _walk(root, (), ())


def named_params(root: object) -> dict[str, Param]:
    """Return the params below `root` by path, in traversal order.

    Raises:
        ValueError: If a module contains itself, or two params have one path.
    """
    found: dict[str, Param] = {}
    for leaf in walk(root):
        if leaf.path in found:
            raise ValueError(
                f"two params have the path {leaf.path!r}: a field name or key with a dot in it?"
            )
        found[leaf.path] = leaf.param
    return found


def _walk(node: object, path: tuple[str, ...], above: tuple[int, ...]) -> Iterator[Leaf]:
    if isinstance(node, Param):
        yield Leaf(".".join(path), node)
    if id(node) in above:
        raise ValueError(
            f"the field {'.'.join(path)!r} leads back to a module that contains it; "
            f"leave it out with field_names = {{{path[-1]!r}: None}}"
        )
    for component, value in children(node):
        yield from _walk(value, (*path, component), (*above, id(node)))


def _fields(module: object) -> Iterator[tuple[str, object]]:
    """Yield name and value of each field: slots from the base class on, then the instance dict."""
    for cls in reversed(type(module).__mro__):
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in {"__dict__", "__weakref__"} and hasattr(module, name):
                yield name, getattr(module, name)
    yield from vars(module).items()
