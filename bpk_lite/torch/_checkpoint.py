"""What `bpk_lite.desktop.Checkpoints` asks of torch: records, and a way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from bpk_lite.torch._ids import adopt_id, id_of
from bpk_lite.torch._lr import load_scheduler_record, scheduler_into_record
from bpk_lite.torch._module import into_record, load_record
from bpk_lite.torch._optim import optim_into_record
from bpk_lite.torch._optim_load import load_optim_record
from bpk_lite.torch._pieces import layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpk_lite.records import Record

__all__ = ["load", "record_of", "snapshot"]


def record_of(value: Any, model: Any) -> Record:
    """Return the record of a torch module, optimizer or scheduler.

    Raises:
        TypeError: an optimizer without its torch module.
    """
    if isinstance(value, torch.nn.Module):
        return into_record(value)
    if isinstance(value, torch.optim.Optimizer):
        return optim_into_record(value, _module(model))
    return scheduler_into_record(value)


def load(target: Any, record: Any, model: Any) -> None:
    """Load a record into a torch module, optimizer or scheduler.

    Raises:
        TypeError: an optimizer without its torch module.
        RecordError: the record does not fit; nothing has changed.
    """
    if isinstance(target, torch.nn.Module):
        load_record(target, record)
    elif isinstance(target, torch.optim.Optimizer):
        load_optim_record(target, record, _module(model))
    else:
        load_scheduler_record(target, record)


def snapshot(target: Any) -> Callable[[], None]:
    """Return what takes `target` back to what it is now. Copies no array."""
    if isinstance(target, torch.nn.Module):
        # loading replaces the memory of a tensor and leaves the old
        held = [(t, t.data, t.grad) for t in (*target.parameters(), *target.buffers())]
        ids = [(piece, id_of(piece)) for piece in layout(target).pieces]

        def back() -> None:
            for piece, param_id in ids:
                adopt_id(piece, param_id)
            for tensor, data, grad in held:
                tensor.data = data
                tensor.grad = grad

        return back
    if isinstance(target, torch.optim.Optimizer):
        state = dict(target.state)

        def back_state() -> None:
            target.state.clear()
            target.state.update(state)

        return back_state
    schedulers = [target, *getattr(target, "_schedulers", ())]
    fields = [(each, dict(vars(each))) for each in schedulers]
    rates = [group["lr"] for group in target.optimizer.param_groups]

    def back_rates() -> None:
        for each, values in fields:
            vars(each).clear()
            vars(each).update(values)
        for group, rate in zip(target.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    return back_rates


def _module(model: Any) -> torch.nn.Module:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            "an optimizer of torch needs its torch module, given as model=, for ids and layouts"
        )
    return model
