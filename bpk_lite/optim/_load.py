"""Rebuild optimizer states from a record (R54 to R58, R41), and say what did not fit.

Burn skips what it cannot rebuild without a word, does not look at shapes, and reads
``+007.__rank`` as the rank of 7. Here each of these is a problem that is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bpk_lite.optim._optimizer import Slot
    from bpk_lite.records import OptimizerRecord

__all__ = ["LoadReport", "rebuild"]

_MAX_RANK = 8


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What loading an optimizer's record did.

    Attributes:
        restored: ids whose state was taken.
        stale: of these, ids that the module does not have; their state is kept and saved again.
        problems: what did not fit, in words.
    """

    restored: tuple[int, ...]
    stale: tuple[int, ...]
    problems: tuple[str, ...]


def rebuild(
    record: OptimizerRecord,
    choose: Callable[[int, str | None, int], Slot],
    shapes: Mapping[int, tuple[int, ...]],
) -> tuple[dict[int, Slot], LoadReport]:
    """Return the slots that `record` holds, by ascending id, and the report.

    Args:
        record: any record.
        choose: makes an empty slot for id, path and rank.
        shapes: shape of each param of the module, by id.
    """
    problems: list[str] = []
    ranks = _ranks(record, problems)
    used: set[str] = set()
    slots: dict[int, Slot] = {}
    for param_id, rank in sorted(ranks.items()):
        slot = choose(param_id, record.metadata.get(str(param_id)), rank)
        wrong = _fill(slot, param_id, record, used)
        if param_id in shapes and not wrong:
            wrong = _misshapen(slot, param_id, shapes[param_id])
        if wrong:
            problems += wrong
        else:
            slots[param_id] = slot
    spare = sorted(name for name in (*record.tensors, *record.scalars) if name not in used)
    problems += [
        f"{name} belongs to no state of {_kinds(slots)}" for name in spare if not _is_rank(name)
    ]
    stale = tuple(param_id for param_id in slots if param_id not in shapes)
    return slots, LoadReport(tuple(slots), stale, tuple(problems))


def _kinds(slots: Mapping[int, Slot]) -> str:
    names = {type(slot.rule).__name__ for slot in slots.values()}
    return ", ".join(sorted(names)) or "this optimizer"


def _is_rank(name: str) -> bool:
    return name.endswith(".__rank") and _canonical(name.removesuffix(".__rank"))


def _canonical(text: str) -> bool:
    return (
        text.isascii()
        and text.isdigit()
        and (text == "0" or text[0] != "0")
        and (int(text) < 1 << 64)
    )


def _ranks(record: OptimizerRecord, problems: list[str]) -> dict[int, int]:
    """Return the rank of each id: as stored, else that of its first tensor (R54.1, R54.3)."""
    ranks: dict[int, int] = {}
    for name, scalar in record.scalars.items():
        if not name.endswith(".__rank"):
            continue
        number = name.removesuffix(".__rank")
        try:
            rank = scalar.as_int(signed=False)
        except ValueError:
            problems.append(f"{name} is {scalar}, expected an unsigned integer")
            continue
        if not _canonical(number):
            problems.append(f"{name} is not the rank of an id: {number!r} is no plain number")
        elif rank > _MAX_RANK:
            problems.append(f"{name} is {rank}; ranks go up to {_MAX_RANK}")
        else:
            ranks[int(number)] = rank
    for name, tensor in record.tensors.items():
        if tensor.param_id is None:
            problems.append(f"{name} has no param id; is it a record of L-BFGS?")
        else:
            ranks.setdefault(int(tensor.param_id), tensor.ndim)
    return ranks


def _fill(slot: Slot, param_id: int, record: OptimizerRecord, used: set[str]) -> list[str]:
    """Put the leaves of a state into `slot`; return what is wrong with them."""
    wrong: list[str] = []
    for leaf in slot.rule.leaves:
        name = f"{param_id}.{leaf.name}"
        tensor, scalar = record.tensors.get(name), record.scalars.get(name)
        if leaf.tensor and tensor is not None:
            used.add(name)
            if tensor.dtype.kind != "float":  # may have no values that numpy knows
                wrong.append(f"{name} is {tensor.dtype}, expected floats")
            else:
                slot.state[leaf.name] = tensor.numpy()
        elif not leaf.tensor and scalar is not None:
            used.add(name)
            try:
                slot.state[leaf.name] = scalar.as_int(signed=False)
            except ValueError:
                wrong.append(f"{name} is {scalar}, expected an unsigned integer")
        elif leaf.required:
            kind = type(slot.rule).__name__
            wrong.append(f"{name} is missing; is it the record of another optimizer than {kind}?")
    return wrong


def _misshapen(slot: Slot, param_id: int, shape: tuple[int, ...]) -> list[str]:
    if slot.rank != len(shape):
        return [f"{param_id}.__rank is {slot.rank}, but the param has shape {list(shape)}"]
    return [
        f"{param_id}.{name} has shape {list(slot.state[name].shape)}, expected {list(expected)}"
        for name, expected in slot.rule.shapes(shape).items()
        if name in slot.state and slot.state[name].shape != expected
    ]
