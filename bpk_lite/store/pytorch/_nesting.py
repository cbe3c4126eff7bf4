"""Refuse values that are nested too deeply, and let go of them level by level (S137).

Python frees a nested value by recursion, and so do `repr` and `hash` go through it. In a browser
that ends the whole runtime, where no exception can be caught. So the machine keeps a list of all
containers that it made: it is looked through without recursion, and while it lives, freeing one
container cannot free the next.
"""

from __future__ import annotations

from typing import Any

from bpk_lite.store.pytorch._values import Opaque, children

__all__ = ["MAX_DEPTH", "is_too_deep", "release"]

MAX_DEPTH = 1000
_CONTAINERS = (dict, list, tuple, Opaque)


def is_too_deep(made: list[Any]) -> bool:
    """Whether any of the containers has more than `MAX_DEPTH` levels; each is looked at once.

    A way back to what is being looked into, as in a list that contains itself, is no level.
    """
    if len(made) <= MAX_DEPTH:
        return False
    heights: dict[int, int] = {}
    for start in made:
        if id(start) in heights:
            continue
        heights[id(start)] = 0
        path = [(start, children(start))]
        while path:
            value, below = path[-1]
            for child in below:
                if not isinstance(child, _CONTAINERS):
                    continue
                known = heights.get(id(child))
                if known is None:
                    heights[id(child)] = 0
                    path.append((child, children(child)))
                    break
                heights[id(value)] = max(heights[id(value)], known + 1)
            else:
                path.pop()
                height = heights[id(value)]
                if path:
                    parent = id(path[-1][0])
                    heights[parent] = max(heights[parent], height + 1)
                if height > MAX_DEPTH:
                    return True
            if len(path) > MAX_DEPTH:
                return True
    return False


def release(made: list[Any]) -> None:
    """Free the containers, none from within another: `made` has them in the order of creation."""
    for value in made:
        if isinstance(value, dict | list):
            value.clear()
        elif isinstance(value, Opaque):
            value.args, value.state, value.mapping, value.sequence = (), None, {}, []
    value = None
    while made:
        made.pop()  # tuples, of which the outer ones were made later
