"""Adafactor's second moments, which have no element for each element of the parameter (R51).

Of a matrix there is a column of row means and a row of column means. Burn's are over the last and
the last but one dimension of *its* layout, so for a transposed weight the two change places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpk_lite.pack import RecordError
from bpk_lite.torch._transfer import fill

if TYPE_CHECKING:
    import torch

    from bpk_lite.records import OptimizerRecord
    from bpk_lite.torch._pieces import Piece

__all__ = ["factored_values", "take_factored"]


def factored_values(piece: Piece, state: dict[str, Any]) -> list[tuple[str, torch.Tensor]]:
    """Return Burn's name and the values of each factor, in Burn's layout. No copy.

    Raises:
        RecordError: a part of a fused weight, whose means cannot be taken apart.
    """
    _refuse_fused(piece)
    return [
        (name, state[key].t() if piece.transposed else state[key]) for name, key, _ in _keys(piece)
    ]


def take_factored(
    piece: Piece, prefix: str, record: OptimizerRecord, state: dict[str, Any], wrong: list[str]
) -> None:
    """Copy the stored factors of a parameter into torch's state."""
    _refuse_fused(piece)
    for name, key, shape in _keys(piece):
        tensor = record.tensors.get(f"{prefix}{name}")
        if tensor is None:
            wrong.append(f"{prefix}{name} of {piece.path} is missing")
        elif tensor.shape != shape or tensor.dtype.kind != "float":
            wrong.append(
                f"{prefix}{name} of {piece.path} is {tensor.dtype} {list(tensor.shape)}, "
                f"expected floats of {list(shape)}"
            )
        else:
            wanted = shape[::-1] if piece.transposed else shape
            state[key] = piece.tensor.detach().new_zeros(wanted)
            fill(state[key].t() if piece.transposed else state[key], tensor)


def _keys(piece: Piece) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return Burn's name, torch's key and Burn's shape of each factor."""
    shape = piece.shape
    if len(shape) < 2:
        return [("second_moment", "variance", shape)]
    rows, columns = ("col_var", "row_var") if piece.transposed else ("row_var", "col_var")
    return [
        ("second_moment", rows, (*shape[:-1], 1)),
        ("column_second_moment", columns, (*shape[:-2], 1, shape[-1])),
    ]


def _refuse_fused(piece: Piece) -> None:
    if piece.rows is not None:
        raise RecordError(
            f"{piece.name} is several parameters in Burn, and Adafactor's means over it cannot be "
            "taken apart"
        )
