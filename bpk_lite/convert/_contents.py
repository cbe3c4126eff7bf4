"""What a file of weights holds, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from bpk_lite.pack import Scalar, Tensor

__all__ = ["SCALARS_KEY", "VALUES_KEY", "Contents", "Format"]

Format = Literal["burnpack", "safetensors", "pytorch", "npz", "gguf"]
SCALARS_KEY = "burnpack.scalars"
"""Metadata entry that holds a pack's scalars in formats without scalars, as JSON."""
VALUES_KEY = "pytorch.values"
"""Metadata entry that holds what a PyTorch checkpoint has beside tensors, as JSON."""


@dataclass
class Contents:
    """What a file holds.

    Attributes:
        format: what it is.
        tensors: its tensors, lazily; a pack's in the order of its data, others' sorted by name.
        scalars: a pack's scalars, also from a file that was converted from one.
        metadata: text to text.
        notes: what could not be taken over, in sentences.
    """

    format: Format
    tensors: list[Tensor]
    scalars: dict[str, Scalar] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _open: Any = None

    def close(self) -> None:
        """Release the file; the tensors cannot be read any more."""
        if self._open is not None:
            self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
