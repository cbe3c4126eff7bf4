"""The state of a torch optimizer into an optimizer record (R43 to R53)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from bpk_lite.pack import DType, RecordError, Scalar
from bpk_lite.records import OptimizerRecord
from bpk_lite.torch import _lbfgs
from bpk_lite.torch._factored import factored_values
from bpk_lite.torch._ids import id_of
from bpk_lite.torch._kinds import kind_of
from bpk_lite.torch._slots import Slot, slots
from bpk_lite.torch._transfer import deferred, dtype_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from bpk_lite.pack import Tensor
    from bpk_lite.torch._kinds import Kind, Leaf
    from bpk_lite.torch._pieces import Piece

__all__ = ["optim_into_record"]


def optim_into_record(
    optimizer: torch.optim.Optimizer, module: nn.Module, *, copy: bool = False
) -> OptimizerRecord:
    """Return an optimizer's state under Burn's names, by the ids of the module's parameters.

    The tensors have Burn's layouts, as the parameters do: those of a linear weight are transposed,
    those of a fused weight cut. Params come in ascending order of their ids (R48). Hyperparameters
    and rates are not part of it (R50). Nothing is copied before the writer gets there; Adafactor's
    state of 16-bit parameters becomes F32, which Burn has it in (R51).

    Args:
        optimizer: SGD, Adam, AdamW, Adagrad, RMSprop, Muon, Adafactor or LBFGS.
        module: what it steps; its parameters bring ids and layouts.
        copy: copy all state now, so that training may go on while the record is being saved.

    Raises:
        RecordError: Burn has no such optimizer or option; a parameter that is not the module's;
            Adafactor on a fused weight; L-BFGS on a part of the parameters.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        return _lbfgs.into_record(optimizer, module)
    kind = kind_of(optimizer)
    rows: list[tuple[int, Piece, list[Tensor], dict[str, Scalar]]] = []
    for slot in slots(optimizer, module):
        state = dict(optimizer.state.get(slot.tensor, {}))
        if not _stepped(kind, slot, state):
            continue
        if copy:
            state = {
                key: value.clone() if isinstance(value, torch.Tensor) else value
                for key, value in state.items()
            }
        for piece in slot.pieces:
            param_id = id_of(piece)
            rank = Scalar("UInt", len(piece.shape))
            scalars = {f"{param_id}.__rank": rank}
            if kind.time is not None:
                scalars[f"{param_id}.{kind.time}"] = Scalar("UInt", _count(state, piece.name))
            rows.append((int(param_id), piece, _tensors(kind, slot, piece, state), scalars))
    rows.sort(key=lambda row: row[0])
    return OptimizerRecord(
        [tensor for row in rows for tensor in row[2]],
        scalars={name: scalar for row in rows for name, scalar in row[3].items()},
        metadata={str(param_id): piece.path for param_id, piece, _, _ in rows},
    )


def _stepped(kind: Kind, slot: Slot, state: Mapping[str, Any]) -> bool:
    """Whether Burn would have a state for the parameter (R47)."""
    if all(value is None for value in state.values()):
        # plain SGD keeps nothing in torch, and an empty state in Burn
        options = slot.group
        plain = not kind.counts and "dampening" in options and not options["momentum"]
        return plain and slot.tensor.requires_grad
    if "initial_accumulator_value" in slot.group:  # Adagrad has a state before the first step
        return bool(slot.group["initial_accumulator_value"]) or _count(state, "a parameter") > 0
    return True


def _count(state: Mapping[str, Any], name: str) -> int:
    """Return the number of steps, which torch keeps as a tensor, a float or an int."""
    step = float(state["step"])
    if not step.is_integer() or step < 0:
        raise RecordError(f"the step count of {name} is {step}, expected a whole number")
    return int(step)


def _tensors(kind: Kind, slot: Slot, piece: Piece, state: dict[str, Any]) -> list[Tensor]:
    param_id = id_of(piece)
    if kind.factored:
        return [
            deferred(
                f"{param_id}.{name}",
                DType.F64 if values.dtype == torch.float64 else DType.F32,
                tuple(values.shape),
                partial(_widened, values),
                (values,),
                param_id,
            )
            for name, values in factored_values(piece, state)
        ]
    made = []
    for leaf in kind.leaves:
        if not leaf.has(state):
            continue
        sources = tuple(value for key, value in state.items() if _is_moment(key, value, slot))
        first = sources[0] if leaf.key is None else state[leaf.key]
        made.append(
            deferred(
                f"{param_id}.{leaf.name}",
                dtype_of(first, piece.name),
                piece.shape,
                partial(_view, leaf, piece, state, slot),
                sources,
                param_id,
            )
        )
    return made


def _widened(values: torch.Tensor) -> torch.Tensor:
    return values if values.dtype == torch.float64 else values.to(torch.float32)


def _is_moment(key: str, value: object, slot: Slot) -> bool:
    return isinstance(value, torch.Tensor) and key != "step" and value.shape == slot.tensor.shape


def _view(leaf: Leaf, piece: Piece, state: dict[str, Any], slot: Slot) -> torch.Tensor:
    whole = state[leaf.key or ""] if leaf.make is None else leaf.make(state, slot.group)
    return piece.view(whole)
