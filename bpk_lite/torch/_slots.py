"""The parameters that a torch optimizer steps, and what they are in Burn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpk_lite.pack import RecordError
from bpk_lite.torch._pieces import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import torch
    from torch import nn

    from bpk_lite.torch._pieces import Piece

__all__ = ["Slot", "slots"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter that an optimizer steps.

    Attributes:
        tensor: the parameter.
        group: its options.
        pieces: what it is in Burn; the first paths, if it is tied.
    """

    tensor: torch.Tensor
    group: Mapping[str, Any]
    pieces: tuple[Piece, ...]


def slots(optimizer: torch.optim.Optimizer, module: nn.Module) -> Iterator[Slot]:
    """Yield the parameters of an optimizer. Raises RecordError for one that is not the module's."""
    pieces: dict[int, dict[str, Piece]] = {}
    for piece in layout(module).pieces:
        pieces.setdefault(id(piece.tensor), {}).setdefault(piece.part, piece)
    for number, group in enumerate(optimizer.param_groups):
        for position, tensor in enumerate(group["params"]):
            found = pieces.get(id(tensor))
            if found is None:
                raise RecordError(
                    f"parameter {position} of group {number}, {list(tensor.shape)}, is none of "
                    f"{type(module).__name__}'s"
                )
            yield Slot(tensor, group, tuple(found.values()))
