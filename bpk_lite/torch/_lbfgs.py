"""L-BFGS, whose state is of all parameters at once (R57, R98).

Its vectors are all parameters flattened and joined: in torch in the order and layout of torch, in
Burn in the order and layout of the traversal. Each vector is taken apart and put together anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from bpk_lite.pack import DType, RecordError, Scalar, Tensor
from bpk_lite.records import OptimizerRecord
from bpk_lite.torch._pieces import layout
from bpk_lite.torch._transfer import dtype_of, fill

if TYPE_CHECKING:
    from torch import nn

    from bpk_lite.torch._pieces import Piece

__all__ = ["into_record", "load_record"]

_PAIRS = {"history_s": "old_stps", "history_y": "old_dirs"}


def into_record(optimizer: torch.optim.LBFGS, module: nn.Module) -> OptimizerRecord:
    """Return the state of an L-BFGS. The vectors are copied.

    Raises:
        RecordError: it does not step all float parameters of the module.
    """
    params, pieces = _matched(optimizer, module)
    state = optimizer.state.get(params[0], {})
    tensors: list[Tensor] = []
    scalars: dict[str, Scalar] = {}
    for name, key in _PAIRS.items():
        vectors = state.get(key) or []
        scalars[f"{name}.len"] = Scalar("UInt", len(vectors))
        tensors += [
            _tensor(f"{name}.{index}", vector, params, pieces)
            for index, vector in enumerate(vectors)
        ]
    for name in ("d", "prev_flat_grad"):
        if state.get(name) is not None:
            tensors.append(_tensor(name, state[name], params, pieces))
    step = state.get("t", 1.0)
    if step is not None:
        scalars["t"] = Scalar("Float", float(step))
    if state.get("prev_loss") is not None:
        scalars["prev_loss"] = Scalar("Float", float(state["prev_loss"]))
    scalars["g_iter"] = Scalar("UInt", int(state.get("n_iter", 0)))
    return OptimizerRecord(tensors, scalars=scalars)


def load_record(optimizer: torch.optim.LBFGS, record: OptimizerRecord, module: nn.Module) -> None:
    """Take the state from a record, all or nothing.

    Raises:
        RecordError: something is missing or has another size, belongs to nothing, or the history
            is longer than the optimizer's.
    """
    params, pieces = _matched(optimizer, module)
    size = sum(param.numel() for param in params)
    used: set[str] = set()
    problems: list[str] = []

    def scalar(name: str, required: bool) -> Scalar | None:
        used.add(name)
        if required and name not in record.scalars:
            problems.append(f"{name} is missing; is it another optimizer's record?")
        return record.scalars.get(name)

    def count(name: str) -> int:
        found = scalar(name, True)
        try:
            return 0 if found is None else found.as_int(signed=False)
        except ValueError:
            problems.append(f"{name} is {found}, expected an unsigned integer")
            return 0

    def number(name: str) -> float | None:
        found = scalar(name, False)
        return None if found is None or found.kind == "Bool" else found.as_float()

    def vector(name: str) -> torch.Tensor | None:
        used.add(name)
        tensor = record.tensors.get(name)
        if tensor is None or tensor.shape != (size,) or tensor.dtype.kind != "float":
            what = "missing" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"
            problems.append(f"{name} is {what}, expected floats of [{size}]")
            return None
        return _join_torch(tensor, params, pieces)

    iterations = count("g_iter")
    pairs = {
        key: [vector(f"{name}.{index}") for index in range(min(count(f"{name}.len"), len(record)))]
        for name, key in _PAIRS.items()
    }
    vectors = {name: vector(name) for name in ("d", "prev_flat_grad") if name in record.tensors}
    step, loss = number("t"), number("prev_loss")
    spare = sorted(name for name in (*record.tensors, *record.scalars) if name not in used)
    problems += [f"{name} belongs to no state of LBFGS" for name in spare]
    if len(pairs["old_dirs"]) != len(pairs["old_stps"]):
        problems.append("history_s and history_y have different lengths")
    most = optimizer.param_groups[0]["history_size"]
    if len(pairs["old_stps"]) > most:  # torch has no room for more, and would fail at the next step
        problems.append(f"history_s has {len(pairs['old_stps'])} vectors; history_size is {most}")
    if problems:
        raise RecordError(
            "the record does not fit LBFGS; nothing was loaded:\n  " + "\n  ".join(problems)
        )
    state: dict[str, Any] = {"func_evals": iterations, "n_iter": iterations}
    if iterations:
        ys: Any = list(zip(pairs["old_dirs"], pairs["old_stps"], strict=True))
        state |= pairs | vectors
        state |= {"t": step, "prev_loss": loss, "ro": [1.0 / y.dot(s) for y, s in ys]}
        state["H_diag"] = ys[-1][0].dot(ys[-1][1]) / ys[-1][0].dot(ys[-1][0]) if ys else 1
    optimizer.state.clear()
    if iterations:
        optimizer.state[params[0]] = state


def _matched(
    optimizer: torch.optim.LBFGS, module: nn.Module
) -> tuple[list[torch.Tensor], list[Piece]]:
    """Return torch's parameters and Burn's pieces, each in its own order."""
    params: list[torch.Tensor] = optimizer.param_groups[0]["params"]
    seen: set[tuple[int, tuple[int, int] | None]] = set()
    pieces: list[Piece] = []
    for piece in layout(module).pieces:
        key = (id(piece.tensor), piece.rows)
        if not piece.running and piece.tensor.is_floating_point() and key not in seen:
            seen.add(key)
            pieces.append(piece)
    if {id(param) for param in params} != {id(piece.tensor) for piece in pieces}:
        raise RecordError(
            "L-BFGS has one state for all float parameters of a module in Burn; this optimizer "
            f"steps {len(params)} of {len({id(piece.tensor) for piece in pieces})}"
        )
    if len({param.dtype for param in params}) > 1:
        raise RecordError("L-BFGS joins all parameters, but they have different dtypes")
    return params, pieces


def _tensor(
    name: str, vector: torch.Tensor, params: list[torch.Tensor], pieces: list[Piece]
) -> Tensor:
    parts: dict[int, torch.Tensor] = {}
    start = 0
    for param in params:
        parts[id(param)] = vector[start : start + param.numel()].view(param.shape)
        start += param.numel()
    joined = torch.cat([piece.view(parts[id(piece.tensor)]).reshape(-1) for piece in pieces]).cpu()
    dtype = dtype_of(joined, name)
    if dtype == DType.BF16:
        return Tensor.from_array(name, joined.view(torch.int16).numpy().view("<u2"), dtype=dtype)
    return Tensor.from_array(name, joined.numpy())


def _join_torch(tensor: Tensor, params: list[torch.Tensor], pieces: list[Piece]) -> torch.Tensor:
    flat = torch.empty(tensor.shape, dtype=params[0].dtype, device=params[0].device)
    fill(flat, tensor)
    parts = {
        id(param): torch.empty(param.shape, dtype=flat.dtype, device=flat.device)
        for param in params
    }
    start = 0
    for piece in pieces:
        place = piece.view(parts[id(piece.tensor)])
        place.copy_(flat[start : start + place.numel()].view(place.shape))
        start += place.numel()
    return torch.cat([parts[id(param)].reshape(-1) for param in params])
