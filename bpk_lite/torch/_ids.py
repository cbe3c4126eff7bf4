"""Param ids of torch parameters: stable for as long as the parameter lives (R7).

torch has no ids, and an optimizer record is nothing but ids. So a parameter gets random ones when
it is first asked, one for each of its pieces, and takes over those of a record that is loaded into
it. Buffers are kept by their module, since moving a module to another device makes new buffers.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torch.utils.weak import WeakTensorKeyDictionary

from bpk_lite.pack import ParamId

if TYPE_CHECKING:
    from torch import nn

    from bpk_lite.torch._pieces import Piece

__all__ = ["adopt_id", "id_of"]

# a plain WeakKeyDictionary compares keys by ==, which for tensors is done by element
_of_parameters: Any = WeakTensorKeyDictionary()
_of_buffers: weakref.WeakKeyDictionary[nn.Module, dict[str, ParamId]] = weakref.WeakKeyDictionary()


def id_of(piece: Piece) -> ParamId:
    """Return the id of a piece."""
    ids = _ids(piece)
    if piece.part not in ids:
        ids[piece.part] = ParamId.random()
    return ids[piece.part]


def adopt_id(piece: Piece, param_id: ParamId) -> None:
    """Give a piece the id that a record has for it."""
    _ids(piece)[piece.part] = param_id


def _ids(piece: Piece) -> dict[str, ParamId]:
    if piece.running:
        return _of_buffers.setdefault(piece.owner, {})
    if piece.tensor not in _of_parameters:
        _of_parameters[piece.tensor] = {}
    found: dict[str, ParamId] = _of_parameters[piece.tensor]
    return found
