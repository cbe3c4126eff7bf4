"""What a pickle is made of here: Python's plain values, and inert stand-ins for everything else.

Nothing named in a file is imported or called (S135). A class or function is a `Global`, an object
made by one is an `Opaque`, a tensor is a `TensorValue` that says where its elements lie.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpk_lite.pack import DType

__all__ = [
    "Global",
    "Opaque",
    "StorageValue",
    "TensorValue",
    "Unsupported",
    "children",
    "short",
    "type_name",
]


@dataclass(frozen=True, slots=True)
class Global:
    """The name of a class or function."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False, repr=False, slots=True)
class Opaque:
    """An object that a class or function would have made.

    Attributes:
        made_by: the name of what would have made it.
        args: what it would have been given.
        state: what would have been set on it, or None.
        mapping: items that were set on it, as a dict's are.
        sequence: items that were appended to it, as a list's are.
        created: made by its class's ``__new__`` (as tuples with named fields are), not by a call.
    """

    made_by: str
    args: tuple[Any, ...] = ()
    state: Any = None
    mapping: dict[Any, Any] = field(default_factory=dict)
    sequence: list[Any] = field(default_factory=list)
    created: bool = False

    def __repr__(self) -> str:
        return f"<{self.made_by}>"  # without what is inside, which may be nested


@dataclass(frozen=True, eq=False, slots=True)
class StorageValue:
    """A storage that tensors lie in, or a view of one (S134).

    Attributes:
        key: under which its bytes are stored.
        dtype: of its elements; None for an untyped one, which counts bytes.
        count: its elements, the whole storage's.
        offset: first element of the view.
        length: elements of the view.
        kind: the name of its class.
    """

    key: str
    dtype: DType | None
    count: int
    offset: int
    length: int
    kind: str


@dataclass(frozen=True, eq=False, slots=True)
class TensorValue:
    """A tensor: elements of a storage, by offset, sizes and strides.

    Attributes:
        storage: where they lie.
        dtype: of the elements.
        offset: of the first element, in elements, within the whole storage.
        shape: sizes.
        strides: in elements.
        negated: whether the values are the negatives of what is stored.
    """

    storage: StorageValue
    dtype: DType
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    negated: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Unsupported:
    """A tensor that Burn has no type for, complex or float8, or that is no plain tensor.

    Attributes:
        reason: in words.
    """

    reason: str


def children(value: Any) -> Iterator[Any]:
    """Yield what a value is made of, one level down."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, Opaque):
        yield from value.args
        yield value.state
        yield from value.mapping.values()
        yield from value.sequence


def short(value: Any) -> str:
    """Return a value as text, cut to a line and to a few levels."""
    text = reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def type_name(value: Any) -> str:
    """Return what a value is called in messages and reports: Python's name for its type."""
    if isinstance(value, TensorValue):
        return "torch.Tensor"
    if isinstance(value, StorageValue):
        return f"torch.{value.kind}"
    if isinstance(value, Opaque):
        return value.made_by
    if isinstance(value, Unsupported):
        return value.reason
    if isinstance(value, Global):
        return str(value)
    return "dictionary" if isinstance(value, dict) else type(value).__name__
