"""A torch module into a module record, and back (R11 to R34, S9, S10, S36)."""

from __future__ import annotations

import logging
import warnings
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import torch

from bpk_lite.nn import LoadReport, Module, Param
from bpk_lite.nn.init import Zeros
from bpk_lite.pack import RecordError
from bpk_lite.records import ModuleRecord
from bpk_lite.torch._ids import adopt_id, id_of
from bpk_lite.torch._pieces import LayoutWarning, Piece, layout
from bpk_lite.torch._transfer import deferred, dtype_of, fill, torch_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from bpk_lite.pack import Tensor
    from bpk_lite.torch._pieces import ModuleLayout

__all__ = ["Tied", "check_tied", "into_record", "load_record", "replace_value", "tensor_of"]

_log = logging.getLogger("bpk_lite")

Tied = Literal["copy", "error", "first"]


def into_record(module: nn.Module, *, tied: Tied = "copy", copy: bool = False) -> ModuleRecord:
    """Return a module's parameters and persistent buffers as a record, as Burn has them.

    Paths and layouts follow the types of the modules, see `layout`, which also tells what is left
    out (a batch norm's ``num_batches_tracked``; logged). Ids are those that the parameters had
    before, here or in a record that was loaded; new parameters get random ones.

    Nothing is copied or moved before the writer reaches a tensor. If a tensor has been written to
    by then, the save fails.

    Args:
        module: any module; it stays as it is.
        tied: what to do with a parameter that occurs at several paths. ``"copy"`` stores it at
            each, as Burn does, under one id (R19); ``"first"`` stores its first occurrence;
            ``"error"`` raises.
        copy: copy all values now, on the device where they are, so that training may go on while
            the record is being saved.

    Warns:
        LayoutWarning: a module of torch that Burn has nothing for; its tensors are stored as they
            are.

    Raises:
        ValueError: a parameter without data; a tied one with ``tied="error"``.
        TypeError: an element type that Burn lacks.
    """
    check_tied(tied)
    found = layout(module)
    _report(found)
    tensors: list[Tensor] = []
    first: dict[tuple[int, tuple[int, int] | None], Piece] = {}
    copies: dict[int, torch.Tensor] = {}
    for piece in found.pieces:
        earlier = first.setdefault((id(piece.tensor), piece.rows), piece)
        if earlier is not piece:
            if tied == "error":
                raise ValueError(f"{piece.name} and {earlier.name} are one parameter")
            if tied == "first":
                continue
        source = piece.tensor.detach()
        if copy:
            source = copies.setdefault(id(piece.tensor), source.clone())
        tensors.append(tensor_of(piece, source))
    return ModuleRecord(tensors)


def check_tied(tied: Tied) -> Tied:
    """Return `tied` if it is a policy."""
    if tied not in get_args(Tied):
        raise ValueError(f"tied is one of {', '.join(get_args(Tied))}, not {tied!r}")
    return tied


def tensor_of(piece: Piece, source: torch.Tensor) -> Tensor:
    """Return the piece of `source`, a tensor of the torch tensor's shape, for a writer."""
    return deferred(
        piece.path,
        dtype_of(source, piece.name),
        piece.shape,
        partial(piece.view, source),
        (source,),
        id_of(piece),
    )


def load_record(
    module: nn.Module,
    record: ModuleRecord,
    *,
    allow_partial: bool = False,
    allow_unused: bool = False,
    validate: bool = True,
    dtype_policy: Literal["record", "module"] = "record",
) -> LoadReport:
    """Load a record that a Burn module, or `into_record`, has made. All or nothing.

    Values are converted to torch's layout by the types of the modules and matched by path alone
    (R25). They are read before the first parameter changes, which costs the module's size once
    more. Parameters stay the objects that they are, so optimizers keep knowing them, and keep their
    ``requires_grad``; they take over the record's ids, which an optimizer's record needs (R34,
    R60). What is not in Burn, such as ``num_batches_tracked``, is left alone. Quantized tensors
    come as float32.

    A tied parameter takes the tensor of its first path that the record has.

    Args:
        module: the module, on any device.
        record: the record.
        allow_partial: leave parameters that have no tensor as they are.
        allow_unused: ignore tensors that belong to no parameter.
        validate: whether another shape is an error; else such parameters stay as they are (R31).
        dtype_policy: ``"record"`` gives the parameters the record's dtypes, ``"module"`` converts
            to the parameters' (R28, R29). Gradients of a parameter that changes its dtype are
            dropped.

    Returns:
        What was loaded, missing, unused and mismatched, by Burn's paths.

    Raises:
        RecordError: something is missing, unused or does not fit; lists all of it.
        ReadError, TruncatedError: a value cannot be read. The module is unchanged in any case.
    """
    found = layout(module)
    _report(found)
    pieces = _wanted(found, record)
    shadow = _shadow(module, pieces)
    report = shadow.load_record(
        record,
        allow_partial=allow_partial,
        allow_unused=allow_unused,
        validate=validate,
        dtype_policy=dtype_policy,
    )
    params = shadow.named_params()
    loaded = {path: (pieces[path], params[path].tensor(path)) for path in report.loaded}
    values = _values(loaded)
    for tensor, value in values:
        replace_value(tensor, value)
    taken: set[tuple[int, str]] = set()
    for path, (piece, _) in loaded.items():
        key = (id(piece.owner if piece.running else piece.tensor), piece.part)
        if key not in taken:
            taken.add(key)
            adopt_id(piece, params[path].id)
    for child in module.modules():
        if isinstance(child, torch.nn.RNNBase):
            child.flatten_parameters()  # cuDNN wants the weights in one piece
    return report


def _wanted(found: ModuleLayout, record: ModuleRecord) -> dict[str, Piece]:
    """Return the pieces by path, without further paths of tied ones that the record leaves out."""
    have = {
        (id(piece.tensor), piece.rows) for piece in found.pieces if piece.path in record.tensors
    }
    return {
        piece.path: piece
        for piece in found.pieces
        if piece.path in record.tensors or (id(piece.tensor), piece.rows) not in have
    }


def _shadow(module: nn.Module, pieces: Mapping[str, Piece]) -> Module:
    """Return a module of ours with the params that Burn would have; it does all the checking."""
    shadow: Module = type(type(module).__name__, (Module,), {})()
    for path, piece in pieces.items():
        vars(shadow)[path] = Param(
            piece.shape,
            Zeros(),
            dtype=dtype_of(piece.tensor, piece.name),
            running=piece.running,
            param_id=id_of(piece),
        )
    return shadow


def _values(
    loaded: Mapping[str, tuple[Piece, Tensor]],
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return each torch tensor with its new value, in its layout and on its device."""
    made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    done: dict[tuple[int, tuple[int, int] | None], str] = {}
    for path, (piece, tensor) in loaded.items():
        key = (id(piece.tensor), piece.rows)
        if key in done:
            continue  # tied: the first path decides
        done[key] = path
        kind = torch_dtype(tensor.dtype)
        if id(piece.tensor) not in made:
            whole = piece.tensor.detach()
            fresh = torch.empty_like(whole, dtype=kind)
            if piece.rows is not None:
                fresh.copy_(whole)  # what the record may not have
            made[id(piece.tensor)] = (piece.tensor, fresh)
        value = made[id(piece.tensor)][1]
        if value.dtype != kind:
            raise RecordError(
                f"{path} is {tensor.dtype}, but other parts of {piece.name} are {value.dtype}; "
                'torch has them in one tensor: load with dtype_policy="module"; nothing was loaded',
                mismatched=[path],
            )
        fill(piece.view(value), tensor)
    return list(made.values())


def replace_value(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Give a parameter or buffer another value and keep the object (S36)."""
    if tensor.dtype != value.dtype:
        tensor.grad = None
    tensor.data = value


def _report(found: ModuleLayout) -> None:
    for name, reason in found.left_out.items():
        _log.info("%s is not part of a record: %s", name, reason)
    if found.plain:
        lines = [f"  {name}: {reason}" for name, reason in found.plain.items()]
        warnings.warn(
            "tensors without a counterpart in Burn, under torch's names and in its layout:\n"
            + "\n".join(lines),
            LayoutWarning,
            stacklevel=3,
        )
