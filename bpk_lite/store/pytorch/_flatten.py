"""From the object in a checkpoint to tensors by name (S138, S149, S150, S242).

Mapping keys and list indices are joined with dots. A pickled module gives the names that its state
dict has. Values are shared, so only what holds a tensor is descended into, each part is looked at
once to know that, and the number of names is bounded: a pickle that refers to itself again and
again ends quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpk_lite.pack import LimitError
from bpk_lite.store._errors import NameCollision, PickleError
from bpk_lite.store.pytorch._values import (
    Opaque,
    StorageValue,
    TensorValue,
    Unsupported,
    children,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["entries_of_object", "items", "leaves"]

_MAX_NODES = 1_000_000
_MAX_DEPTH = 1000
_TABLES = ("_parameters", "_buffers", "_modules")


def leaves(root: Any) -> tuple[dict[str, TensorValue | Unsupported], dict[str, str]]:
    """Return the tensors below `root` by name, and what else holds tensors but is none.

    Returns:
        Tensors, and a reason for each object with tensors inside that is no container.

    Raises:
        NameCollision: two paths give one name.
        LimitError: nested or repeated beyond any real checkpoint.
        PickleError: a module whose tables contradict each other.
    """
    holding = _holding(root)
    found: dict[str, TensorValue | Unsupported] = {}
    refused: dict[str, str] = {}
    nodes = 0
    pending: list[tuple[str, Any, tuple[int, ...]]] = [("", root, ())]
    while pending:
        name, value, above = pending.pop()
        nodes += 1
        if nodes > _MAX_NODES:
            raise LimitError(f"a memo bomb: more than {_MAX_NODES} names by repeated references")
        if isinstance(value, TensorValue | Unsupported):
            if name in found:
                raise NameCollision(f"two paths in the checkpoint give the name {name!r}")
            found[name] = value
            continue
        if isinstance(value, StorageValue) or id(value) not in holding or id(value) in above:
            continue  # a storage alone is ignored, and so is a way back to what contains it
        if len(above) >= _MAX_DEPTH:
            raise LimitError(f"nesting exceeds {_MAX_DEPTH} levels at {name[:80]!r}")
        below = items(value)
        if below is None:
            refused[name] = f"{type_name(value)} is no plain container, but holds tensors"
            continue
        inside = (*above, id(value))
        pending += reversed(
            [(f"{name}.{key}" if above or name else str(key), item, inside) for key, item in below]
        )
    return found, refused


def items(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the entries of a container, also of what merely subclasses one; None for others."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if not isinstance(value, Opaque):
        return None
    named = entries_of_object(value)
    if named is not None:
        return named
    if value.sequence:
        return list(enumerate(value.sequence))
    if value.created and value.args and value.state is None:
        return list(enumerate(value.args))  # a tuple with named fields
    return None


def entries_of_object(value: Opaque) -> list[tuple[Any, Any]] | None:
    """Return the named entries of an object that has such: a module, a dict, TorchScript's."""
    if isinstance(value.state, dict) and all(
        isinstance(value.state.get(table), dict) for table in _TABLES
    ):
        return list(_module(value.state, value.made_by))
    if value.mapping or value.made_by == "collections.defaultdict":
        return list(value.mapping.items())
    if value.made_by.startswith("__torch__.") and isinstance(value.state, dict):
        return list(value.state.items())  # a TorchScript object: its attributes
    return None


def _module(state: dict[Any, Any], cls: str) -> Iterator[tuple[str, Any]]:
    """Yield what a module's state dict has: parameters, persistent buffers, children (S149)."""
    left_out = state.get("_non_persistent_buffers_set", ())
    if not isinstance(left_out, list | tuple) or not all(isinstance(n, str) for n in left_out):
        raise PickleError(f"module {cls}: _non_persistent_buffers_set is no set of names")
    seen: set[Any] = set()
    for table in _TABLES:
        for name, value in state[table].items():
            if name in seen:
                raise PickleError(f"module {cls}: {name!r} is registered twice")
            seen.add(name)
            if value is not None and not (table == "_buffers" and name in left_out):
                yield name, value


def _holding(root: Any) -> set[int]:
    """Return the ids of all values that hold a tensor, at any depth; each is looked at once."""
    seen: set[int] = set()
    parents: dict[int, list[int]] = {}
    pending = [root]
    holding: list[int] = []
    while pending:
        value = pending.pop()
        if id(value) in seen or not isinstance(
            value, dict | list | tuple | Opaque | StorageValue | TensorValue | Unsupported
        ):
            continue
        seen.add(id(value))
        if isinstance(value, StorageValue | TensorValue | Unsupported):
            holding.append(id(value))
        for child in children(value):
            parents.setdefault(id(child), []).append(id(value))
            pending.append(child)
    result: set[int] = set()
    while holding:
        one = holding.pop()
        if one not in result:
            result.add(one)
            holding += parents.get(one, ())
    return result
