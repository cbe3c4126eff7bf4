"""One view of everything that holds tensors: packs, records, files of other formats, arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from bpk_lite.inspect._kind import record_kind
from bpk_lite.pack import PlanError, Reader, Scalar, Tensor

__all__ = ["Content", "HoldsTensors", "Inspectable", "content_of"]


@runtime_checkable
class HoldsTensors(Protocol):
    """Records, and the contents of files of other formats (`bpk_lite.convert.Contents`)."""

    @property
    def tensors(self) -> Iterable[Tensor] | Mapping[str, Tensor]:
        """The tensors, or a mapping from name to tensor."""
        ...

    @property
    def scalars(self) -> Mapping[str, Scalar]:
        """Typed scalars."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """Text to text."""
        ...


Inspectable: TypeAlias = "Reader | HoldsTensors | Mapping[str, Any]"
"""A pack, a record, the contents of a file, or a mapping from name to array or `Tensor`."""


@dataclass(frozen=True, slots=True)
class Content:
    """What is there, by name.

    Attributes:
        tensors: name to tensor, in byte order of the names.
        scalars: name to scalar.
        metadata: text to text.
        format: ``"burnpack"``, ``"safetensors"``, …; empty for what is no file.
        notes: what could not be taken over from a file of another format.
    """

    tensors: Mapping[str, Tensor]
    scalars: Mapping[str, Scalar]
    metadata: Mapping[str, str]
    format: str
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What it is, as its names tell."""
        ids = sum(tensor.param_id is not None for tensor in self.tensors.values())
        return record_kind(self.tensors, self.scalars, self.metadata, ids)


def content_of(given: Inspectable) -> Content:
    """Return what `given` holds. Reads no data.

    Raises:
        TypeError: it holds no tensors, or a value of a mapping is no array.
        PlanError: two tensors have one name.
    """
    if isinstance(given, Reader):
        return Content(dict(given), given.scalars, given.metadata, "burnpack")
    if isinstance(given, HoldsTensors):
        held = given.tensors
        listed = list(held.values() if isinstance(held, Mapping) else held)
        return Content(
            _by_name(listed),
            given.scalars,
            given.metadata,
            str(getattr(given, "format", "")),
            tuple(getattr(given, "notes", ())),
        )
    if isinstance(given, Mapping):
        made = [
            value.replace(name=name)
            if isinstance(value, Tensor)
            else Tensor.from_array(name, value)
            for name, value in given.items()
        ]
        return Content(_by_name(made), {}, {}, "")
    raise TypeError(
        "expected an open pack, a record, the contents of a file, or a mapping from name to array, "
        f"not {type(given).__name__}"
    )


def _by_name(tensors: list[Tensor]) -> dict[str, Tensor]:
    found = {tensor.name: tensor for tensor in sorted(tensors, key=lambda tensor: tensor.name)}
    if len(found) < len(tensors):
        names = [tensor.name for tensor in tensors]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"two tensors are named {twice!r}")
    return found
