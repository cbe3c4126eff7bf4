"""An optimizer record into the state of a torch optimizer (R54 to R61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from bpk_lite.pack import RecordError
from bpk_lite.torch import _lbfgs
from bpk_lite.torch._factored import take_factored
from bpk_lite.torch._ids import id_of
from bpk_lite.torch._kinds import kind_of
from bpk_lite.torch._slots import Slot, slots
from bpk_lite.torch._transfer import fill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from bpk_lite.records import OptimizerRecord
    from bpk_lite.torch._kinds import Kind, Leaf
    from bpk_lite.torch._pieces import Piece

__all__ = ["load_optim_record"]


def load_optim_record(
    optimizer: torch.optim.Optimizer, record: OptimizerRecord, module: nn.Module
) -> None:
    """Replace an optimizer's state by that of a record, all or nothing (R54).

    Load the module's record first, which brings the ids (R60). Parameters that the record does not
    have start afresh. The state gets the parameter's dtype, as torch's own loading gives it, and
    lies on its device.

    Args:
        optimizer: one of those of `optim_into_record`, with the hyperparameters to go on with.
        record: what Burn, `bpk_lite.optim` or `optim_into_record` has made.
        module: what the optimizer steps.

    Raises:
        RecordError: no such optimizer in Burn; a state that is incomplete, has another shape, or
            belongs to nothing, such as that of another optimizer. Lists all of it.
        ReadError, TruncatedError: a value cannot be read. Nothing has changed in any case.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        _lbfgs.load_record(optimizer, record, module)
        return
    kind = kind_of(optimizer)
    problems: list[str] = []
    used: set[str] = set()
    states: list[tuple[torch.Tensor, dict[str, Any]]] = []
    named = _by_id(record)
    for slot in slots(optimizer, module):
        before = optimizer.state.get(slot.tensor, {})
        state = _rebuild(kind, slot, record, named, used, problems, before)
        if state is not None:
            states.append((slot.tensor, state))
    spare = sorted(name for name in (*record.tensors, *record.scalars) if name not in used)
    problems += [f"{name} belongs to no state of {type(optimizer).__name__}" for name in spare]
    if problems:
        raise RecordError(
            f"the record does not fit {type(optimizer).__name__}; nothing was loaded:\n  "
            + "\n  ".join(problems)
            + "\nload the module's record first, which brings the ids"
        )
    optimizer.state.clear()
    for tensor, state in states:
        optimizer.state[tensor] = state


def _by_id(record: OptimizerRecord) -> dict[str, list[str]]:
    """Return the names of a record by what stands before their first dot."""
    named: dict[str, list[str]] = {}
    for name in (*record.tensors, *record.scalars):
        named.setdefault(name.partition(".")[0], []).append(name)
    return named


def _rebuild(
    kind: Kind,
    slot: Slot,
    record: OptimizerRecord,
    named: Mapping[str, list[str]],
    used: set[str],
    problems: list[str],
    before: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Return torch's state of a parameter, or None if the record has none or it does not fit."""
    prefixes = {piece: f"{id_of(piece)}." for piece in slot.pieces}
    names = {piece: named.get(prefix[:-1], []) for piece, prefix in prefixes.items()}
    present = [piece for piece in slot.pieces if names[piece]]
    if not present:
        return _fresh(slot, before)
    tied = slot.pieces[0].rows is None
    pieces = present[:1] if tied else list(slot.pieces)
    for piece in present:
        used.update(_known(kind, prefixes[piece]) & set(names[piece]))
    wrong: list[str] = []
    state: dict[str, Any] = {}
    if kind.counts:
        state["step"] = _step(kind, slot, [prefixes[p] for p in pieces], record, before, wrong)
    for piece in pieces:
        rank = record.scalars.get(f"{prefixes[piece]}__rank")
        if rank is not None and rank.value != len(piece.shape):
            wrong.append(f"{prefixes[piece]}__rank is {rank}, {piece.path} has {len(piece.shape)}")
        if kind.factored:
            take_factored(piece, prefixes[piece], record, state, wrong)
            continue
        for leaf in kind.leaves:
            _take(leaf, slot, piece, prefixes[piece], record, state, wrong)
    for leaf in kind.leaves:
        if leaf.key is None:
            continue
        if leaf.take is not None and leaf.key in state:
            leaf.take(state[leaf.key], slot.group)
        if leaf.key not in state and leaf.start is not None and leaf.start(slot.group):
            state[leaf.key] = torch.zeros_like(slot.tensor)
    problems += wrong
    return None if wrong or not state else state


def _known(kind: Kind, prefix: str) -> set[str]:
    names = {f"{prefix}{leaf.name}" for leaf in kind.leaves} | {f"{prefix}__rank"}
    return names if kind.time is None else names | {f"{prefix}{kind.time}"}


def _fresh(slot: Slot, before: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state before the first step, which only Adagrad has (None: no state)."""
    start = slot.group.get("initial_accumulator_value")
    if start is None:
        return None
    step = before.get("step")
    zero = torch.zeros_like(step) if isinstance(step, torch.Tensor) else torch.tensor(0.0)
    return {"step": zero, "sum": torch.full_like(slot.tensor, start)}


def _step(
    kind: Kind,
    slot: Slot,
    prefixes: list[str],
    record: OptimizerRecord,
    before: Mapping[str, Any],
    wrong: list[str],
) -> torch.Tensor:
    """Return torch's step count, on the device where this optimizer keeps it."""
    counts: set[int] = set()
    for prefix in prefixes if kind.time is not None else ():
        scalar = record.scalars.get(f"{prefix}{kind.time}")
        try:
            if scalar is None:
                wrong.append(f"{prefix}{kind.time} is missing; is it another optimizer's record?")
            else:
                counts.add(scalar.as_int(signed=False))
        except ValueError:
            wrong.append(f"{prefix}{kind.time} is {scalar}, expected an unsigned integer")
    if len(counts) > 1:
        wrong.append(
            f"{slot.pieces[0].name} is one parameter in torch, but its parts have been stepped "
            f"{' and '.join(map(str, sorted(counts)))} times"
        )
    count = float(max(counts, default=0))
    if kind.time is None:
        count = float(before.get("step", 0.0))
    on_device = slot.group.get("capturable") or slot.group.get("fused")
    wide = torch.get_default_dtype() == torch.float64
    step = torch.tensor(count, dtype=torch.float64 if wide else torch.float32)
    if float(step) != count:
        wrong.append(
            f"{slot.pieces[0].name} has been stepped {count:.0f} times, too often for torch"
        )
    return step.to(slot.tensor.device) if on_device else step


def _take(
    leaf: Leaf,
    slot: Slot,
    piece: Piece,
    prefix: str,
    record: OptimizerRecord,
    state: dict[str, Any],
    wrong: list[str],
) -> None:
    """Copy a stored tensor into torch's state."""
    name = f"{prefix}{leaf.name}"
    tensor = record.tensors.get(name)
    if tensor is None:
        if leaf.required:
            wrong.append(f"{name} of {piece.path} is missing; is it another optimizer's record?")
        return
    if tensor.shape != piece.shape or tensor.dtype.kind != "float":
        wrong.append(
            f"{name} of {piece.path} is {tensor.dtype} {list(tensor.shape)}, "
            f"expected floats of {list(piece.shape)}"
        )
        return
    if leaf.key is None:
        return  # computed from the others
    if leaf.key not in state:
        state[leaf.key] = torch.zeros_like(slot.tensor)
    fill(piece.view(state[leaf.key]), tensor)
