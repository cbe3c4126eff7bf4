"""What may be given as model, optimizer and scheduler: records, what makes them, and torch's.

Putting a record back is undone when a later part of the same epoch does not fit, so that a restore
changes everything or nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from bpk_lite.desktop._checkpoint import PARTS
from bpk_lite.nn import Module
from bpk_lite.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["apply", "record_of"]


def record_of(part: str, value: Any, model: Any) -> Record:
    """Return the record of a value.

    Args:
        part: what it is given as.
        value: a record, an object with ``into_record()``, or torch's module, optimizer, scheduler.
        model: the model given with it, which torch's optimizers need.

    Raises:
        TypeError: none of these.
    """
    if _is_torch(value):
        record = _bridge().record_of(value, model)
    elif isinstance(value, Record):
        record = value
    elif hasattr(value, "into_record"):
        record = value.into_record()
    else:
        raise TypeError(
            f"{part}= takes a record, a module, optimizer or scheduler of bpk_lite or torch, "
            f"not {type(value).__name__}"
        )
    if not isinstance(record, PARTS[part]):
        raise TypeError(
            f"{part}= takes what makes a {PARTS[part].__name__}, "
            f"not {type(value).__name__}, which makes a {type(record).__name__}"
        )
    return record


def apply(targets: Mapping[str, Any], records: Mapping[str, Record]) -> None:
    """Load the records into the targets, in order; undo it all if one does not fit.

    Raises:
        TypeError: a target that takes no record.
        RecordError: from a target. Nothing has changed then.
    """
    for part, target in targets.items():
        if not _is_torch(target) and not hasattr(target, "load_record"):
            raise TypeError(
                f"{part}= takes a module, optimizer or scheduler of bpk_lite or torch, "
                f"not {type(target).__name__}"
            )
    undo: list[Callable[[], object]] = []
    for part, target in targets.items():
        undo.append(_snapshot(target, targets.get("model")))
        try:
            if _is_torch(target):
                _bridge().load(target, records[part], targets.get("model"))
            else:
                target.load_record(records[part])
        except BaseException as error:
            for back in reversed(undo):
                back()
            error.add_note(f"this is the record of the {part}; all parts are as they were")
            raise


def _snapshot(target: Any, model: Any) -> Callable[[], object]:
    """Return what takes `target` back to what it is now. Copies no array."""
    if _is_torch(target):
        undo: Callable[[], object] = _bridge().snapshot(target)
        return undo
    if isinstance(target, Module):
        # a param that was not used yet has no array to go back to, so its fields are kept
        states = [(param, param.__reduce_ex__(4)[2]) for param in target.named_params().values()]
        return lambda: _restore(states)
    if not hasattr(target, "into_record"):
        return lambda: None
    record = target.into_record()
    return lambda: target.load_record(record)


def _restore(states: list[tuple[Any, Any]]) -> None:
    for param, (_, slots) in states:
        for name, value in slots.items():
            setattr(param, name, value)


def _is_torch(value: Any) -> bool:
    """Whether this is torch's. Does not import torch: what is not imported has no objects."""
    torch = sys.modules.get("torch")
    if torch is None or isinstance(value, Module | Record):
        return False
    return isinstance(
        value,
        torch.nn.Module | torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler,
    )


def _bridge() -> Any:
    return importlib.import_module("bpk_lite.torch._checkpoint")
