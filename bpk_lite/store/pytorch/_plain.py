"""What a pickle holds beside tensors: settings, epochs (S152, S153, S239 to S243)."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Union, get_args, get_origin

import numpy as np

from bpk_lite._door import desktop
from bpk_lite.pack import BytesSource, LimitError, Limits
from bpk_lite.store._errors import ConfigError, NameCollision, StoreError
from bpk_lite.store.pytorch._flatten import entries_of_object, items
from bpk_lite.store.pytorch._values import (
    Opaque,
    StorageValue,
    TensorValue,
    Unsupported,
    type_name,
)

__all__ = ["UnsupportedValue", "load_config", "plain_values", "read_pickle_data"]

T = TypeVar("T")
_MAX_NODES = 1_000_000
_MAX_DEPTH = 200  # two calls a level, and Python has a thousand
_FLOAT_RANGE = 1 << 1023  # integers below it have a float


@dataclass(frozen=True, slots=True)
class UnsupportedValue:
    """Stands for a tensor, a class, or an object that only its own code could make.

    Attributes:
        type: Python's name of its type, as in ``"torch.Tensor"``.
    """

    type: str


def read_pickle_data(source: Any, top_level_key: str | None = None) -> Any:
    """Return the values in a PyTorch checkpoint or a pickle (S152). Nothing in it is executed.

    Args:
        source: a path or a buffer.
        top_level_key: one entry of the root, taken literally.

    Returns:
        None, bools, ints, floats, text, bytes, lists and dicts with text keys; tuples are lists,
        and configs of omegaconf, which Lightning keeps hyperparameters in, are what they contain.
        What is none of these is an `UnsupportedValue`.

    Raises:
        ReadError, FormatError: it cannot be read, or is no checkpoint.
        StoreError: no such key.
        NameCollision: two keys of one dict have the same text.
        LimitError: values that repeat themselves beyond reason.
    """
    from bpk_lite.store.pytorch._reader import open_root

    if isinstance(source, str) or hasattr(source, "__fspath__"):
        opened = desktop().open_source(source, limits=Limits(), exact=True)
    else:
        opened = BytesSource(source)
    try:
        root, _, _ = open_root(opened)
        if top_level_key is not None:
            found = items(root)
            named = found is not None and not isinstance(root, list | tuple)
            by_text = {str(key): value for key, value in found} if found and named else {}
            if top_level_key not in by_text:
                raise StoreError(
                    f"{opened.name}: top-level key {top_level_key!r} not found; there are "
                    f"{', '.join(sorted(by_text)) or 'none'}"
                )
            root = by_text[top_level_key]
        return _Plain().of(root, 0)
    finally:
        opened.close()


def plain_values(root: Any) -> dict[str, Any]:
    """Return the entries of a checkpoint that hold anything but tensors, ready for JSON.

    Tensors are left out, containers with nothing else in them, and the versions that state dicts
    have under ``_metadata``. Bytes and what is unsupported are named, not kept.
    """
    values = _Plain().of(root, 0)
    kept = _without_tensors(values)
    return kept if isinstance(kept, dict) else {} if kept is _NOTHING else {"": kept}


_NOTHING = object()


def _without_tensors(value: Any) -> Any:
    if isinstance(value, UnsupportedValue):
        return _NOTHING if value.type.startswith("torch.") else f"<{value.type}>"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, dict):
        kept = {key: _without_tensors(one) for key, one in value.items() if key != "_metadata"}
        kept = {key: one for key, one in kept.items() if one is not _NOTHING}
        return kept if kept or not value else _NOTHING
    if isinstance(value, list):
        rest = [_without_tensors(one) for one in value]
        if value and all(one is _NOTHING for one in rest):
            return _NOTHING
        return [None if one is _NOTHING else one for one in rest]
    return value


class _Plain:
    """Turns values plain, and counts them: shared parts may repeat without end."""

    def __init__(self) -> None:
        self._nodes = 0

    def of(self, value: Any, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise LimitError(
                f"a memo bomb: more than {_MAX_NODES} values, or {_MAX_DEPTH} levels of them"
            )
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return value
        if isinstance(value, TensorValue | Unsupported):
            return UnsupportedValue("torch.Tensor")
        if isinstance(value, StorageValue):
            return UnsupportedValue(f"torch.{value.kind}")
        if isinstance(value, bytearray):
            return bytes(value)
        if isinstance(value, list | tuple):
            return [self.of(one, depth + 1) for one in value]
        named = items(value) if isinstance(value, dict) else None
        if isinstance(value, Opaque):
            if value.made_by.startswith("omegaconf.") and isinstance(value.state, dict):
                inside = value.state.get("_content", value.state.get("_val"))
                return self.of(inside, depth + 1)
            named = entries_of_object(value)
            if named is None and value.sequence:
                return [self.of(one, depth + 1) for one in value.sequence]
        if named is None:
            return UnsupportedValue(type_name(value))
        made: dict[str, Any] = {}
        for key, one in named:
            if str(key) in made:
                raise NameCollision(f"two keys of one dict are {str(key)!r} as text")
            made[str(key)] = self.of(one, depth + 1)
        return made


def load_config(cls: type[T], source: Any, top_level_key: str | None = None) -> T:
    """Return settings of a checkpoint as a value of type `cls` (S153, S243).

    Entries that a dataclass does not name are ignored. An integer is taken for a float, a tuple
    for a list, bytes for a list of `numpy.uint8`; None only where the type allows it. An entry that
    is not there takes its default, or None where the type allows it.

    Args:
        cls: a dataclass, or any type made of ``bool``, ``int``, ``float``, ``str``, ``bytes``,
            ``list``, ``tuple``, ``dict``, unions, ``Any``, and numpy's integer types for ranges.
        source: a path or a buffer.
        top_level_key: one entry of the root, taken literally.

    Raises:
        ConfigError: a value that is missing or does not fit; says where, and what it is.
        ReadError, FormatError, StoreError: see `read_pickle_data`.
    """
    result: T = _fitted(cls, read_pickle_data(source, top_level_key), "")
    return result


def _fitted(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _of_union(inner, value, where, kind)
    if dataclasses.is_dataclass(kind):
        return _of_dataclass(kind, value, where)
    if kind is None or kind is type(None):
        if value is None:
            return None
        raise _misfit(where, "None", value)
    if kind is bool or kind is str or kind is bytes:
        if type(value) is kind:
            return value
    elif kind is int or (isinstance(kind, type) and issubclass(kind, np.integer)):
        if type(value) is int and _in_range(kind, value):
            return kind(value)
    elif kind is float:
        if type(value) is float or (type(value) is int and abs(value) < _FLOAT_RANGE):
            return float(value)
    elif origin in (list, Sequence) or kind is list:
        item = inner[0] if inner else Any
        if isinstance(value, list) or (isinstance(value, bytes) and item is np.uint8):
            return [_fitted(item, one, f"{where}[{i}]") for i, one in enumerate(value)]
    elif origin is tuple or kind is tuple:
        inner = (Any, ...) if kind is tuple else inner
        repeated = len(inner) == 2 and inner[1] is Ellipsis
        if isinstance(value, list) and (repeated or len(value) == len(inner)):
            kinds = [inner[0]] * len(value) if repeated else inner
            return tuple(
                _fitted(item, one, f"{where}[{i}]")
                for i, (item, one) in enumerate(zip(kinds, value, strict=True))
            )
    elif origin in (dict, Mapping) or kind is dict:
        item = inner[1] if inner else Any
        if inner and inner[0] not in (str, Any):
            raise TypeError(f"load_config cannot make a {kind}: keys are text")
        if isinstance(value, dict):
            return {key: _fitted(item, one, f"{where}.{key}") for key, one in value.items()}
    else:
        raise TypeError(f"load_config cannot make a {kind}")
    raise _misfit(where, getattr(kind, "__name__", str(kind)) if not inner else str(kind), value)


def _of_union(inner: tuple[Any, ...], value: Any, where: str, kind: Any) -> Any:
    if value is None and type(None) in inner:
        return None
    for one in inner:
        try:
            return _fitted(one, value, where)
        except ConfigError:
            continue
    raise _misfit(where, str(kind), value)


def _of_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _misfit(where, kind.__name__, value)
    hints = typing.get_type_hints(kind)
    given = {}
    for field in (one for one in dataclasses.fields(kind) if one.init):
        path = f"{where}.{field.name}" if where else field.name
        required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        if field.name in value:
            given[field.name] = _fitted(hints[field.name], value[field.name], path)
        elif required and type(None) not in get_args(hints[field.name]):
            raise ConfigError(f"{path} is missing; there are {', '.join(sorted(value)) or 'none'}")
        elif required:
            given[field.name] = None
    return kind(**given)


def _in_range(kind: Any, value: int) -> bool:
    if kind is int:
        return True
    bounds = np.iinfo(kind)
    return int(bounds.min) <= value <= int(bounds.max)


def _misfit(where: str, expected: str, value: Any) -> ConfigError:
    found = value.type if isinstance(value, UnsupportedValue) else f"{value!r:.60}"
    return ConfigError(f"{where or 'the value'}: expected {expected}, found {found}")
