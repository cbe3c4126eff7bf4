"""The module optimizer: which rule steps which param, and the state of each.

Rules R43 to R61 and R103 to R108.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn import Module, Param, ParamGroup
from bpk_lite.optim._load import LoadReport, rebuild
from bpk_lite.optim.lr import Rates
from bpk_lite.pack import RecordError, Scalar, Tensor
from bpk_lite.records import OptimizerRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpk_lite.optim._clipping import Clipping
    from bpk_lite.optim._rule import Rule, State

__all__ = ["ModuleOptimizer"]


@dataclass(frozen=True, slots=True)
class _Group:
    """A rule, the params it is for, and their clipping."""

    group: ParamGroup
    rule: Rule
    clipping: Clipping | None


@dataclass(slots=True)
class Slot:
    """What is kept for one param: its state, and the choice that was made when it began (R104)."""

    path: str | None
    rank: int
    rule: Rule
    clipping: Clipping | None
    state: State = field(default_factory=dict)


class ModuleOptimizer:
    """Steps the params of a module by their gradients, with Burn's arithmetic, bit for bit.

    The params' arrays are replaced, never written into. State is kept by param id, so it follows a
    param through records. A param gets its state at its first step with a gradient (R47).

    Attributes:
        module: the module that is stepped.
        lr: learning rate of steps that are given none; binary64.
    """

    def __init__(self, module: Module, config: Rule, lr: float | None = None) -> None:
        self.module = module
        self.lr = lr
        self._groups = [_Group(ParamGroup.all(), config, config.grad_clipping)]
        self._slots: dict[int, Slot] = {}

    @property
    def config(self) -> Rule:
        """The base configuration, for params that no group takes."""
        return self._groups[0].rule

    def add_group(
        self, group: ParamGroup, config: Rule, *, clipping: Clipping | None = None
    ) -> ModuleOptimizer:
        """Give the params of `group` a configuration of their own; return self (R103).

        The last group that takes a param decides. State that its params had is dropped.

        Args:
            group: the params.
            config: how they are stepped.
            clipping: instead of the configuration's own (R105).
        """
        self._groups.append(_Group(group, config, clipping or config.grad_clipping))
        for param_id in [
            param_id for param_id, slot in self._slots.items() if group.matches(param_id, slot.path)
        ]:
            del self._slots[param_id]
        return self

    def step(self, grads: Mapping[str, Any], lr: float | Rates | None = None) -> None:
        """Step every param that has a gradient.

        All or nothing: gradients are checked, and every new value computed, before the first param
        changes. A param with several paths is stepped once, by the gradient of its first (R101).

        Args:
            grads: path to gradient; an array of the param's shape, cast to its dtype.
            lr: the learning rate, or one for each group (R106); by default ``self.lr``.

        Raises:
            KeyError: a path that the module does not have.
            ValueError: a gradient of another shape; of a frozen, integer or quantized param or a
                running state; a loaded state of another shape (R107); no learning rate.
        """
        rate = self.lr if lr is None else lr
        if rate is None:
            raise ValueError("no learning rate: give one to the optimizer or to step()")
        params = self.module.named_params()
        unknown = [path for path in grads if path not in params]
        if unknown:
            raise KeyError(f"gradients for params that the module does not have: {unknown}")
        done: dict[int, tuple[Param, np.ndarray[Any, Any], Slot]] = {}
        for path, param in params.items():
            if path not in grads or int(param.id) in done:
                continue
            slot = self._slots.get(int(param.id)) or self._new_slot(param, path)
            each = rate.of(param.id, path) if isinstance(rate, Rates) else rate
            value, state = _stepped(param, path, grads[path], each, slot)
            moved = Slot(path, value.ndim, slot.rule, slot.clipping, state)
            done[int(param.id)] = (param, value, moved)
        for param_id, (param, value, slot) in done.items():
            param.value = value
            self._slots[param_id] = slot

    def into_record(self) -> OptimizerRecord:
        """Return the state by param id, ascending (R43 to R48). Arrays are kept by reference.

        Hyperparameters and the learning rate are not in it (R50).
        """
        tensors: list[Tensor] = []
        scalars: dict[str, Scalar] = {}
        metadata: dict[str, str] = {}
        for param_id, slot in sorted(self._slots.items()):
            scalars[f"{param_id}.__rank"] = Scalar("UInt", slot.rank)
            if slot.path is not None:
                metadata[str(param_id)] = slot.path
            for leaf in slot.rule.leaves:
                if leaf.name not in slot.state:
                    continue
                name, value = f"{param_id}.{leaf.name}", slot.state[leaf.name]
                if leaf.tensor:
                    tensors.append(Tensor.from_array(name, value, param_id=param_id))
                else:
                    scalars[name] = Scalar("UInt", value)
        return OptimizerRecord(tensors, scalars=scalars, metadata=metadata)

    def load_record(self, record: OptimizerRecord, *, allow_partial: bool = False) -> LoadReport:
        """Take the state from a record, replacing all there is (R54).

        Load the module's record first: it brings the ids (R60). The dtype of the state stays as it
        is stored, where Burn casts it to its default float (R42).

        Args:
            record: an optimizer's record.
            allow_partial: do as Burn does with what does not fit: such params start afresh.

        Returns:
            What was restored and what was not.

        Raises:
            RecordError: a state that cannot be rebuilt, has another shape or rank than its param,
                or names that belong to nothing. The optimizer is unchanged then.
        """
        slots, report = rebuild(record, self._choose, self._shapes())
        if report.problems and not allow_partial:
            raise RecordError(
                "the record does not fit the optimizer; nothing was loaded:\n  "
                + "\n  ".join(report.problems)
                + "\nallow_partial=True lets these params start afresh"
            )
        self._slots = slots
        return report

    def save(self, path: Any) -> str:
        """Save the state to a file, atomically; return its path (R59)."""
        return self.into_record().save(path)

    def load(self, path: Any, *, allow_partial: bool = False) -> LoadReport:
        """Load the state from a file (R59); see `load_record`."""
        return self.load_record(OptimizerRecord.load(path), allow_partial=allow_partial)

    def _shapes(self) -> dict[int, tuple[int, ...]]:
        return {int(param.id): param.shape for param in self.module.named_params().values()}

    def _choose(self, param_id: int, path: str | None, rank: int) -> Slot:
        """Return a fresh slot for a param: the last group that takes it decides."""
        chosen = next(each for each in reversed(self._groups) if each.group.matches(param_id, path))
        return Slot(path, rank, chosen.rule, chosen.clipping)

    def _new_slot(self, param: Param, path: str) -> Slot:
        return self._choose(param.id, path, len(param.shape))

    def __repr__(self) -> str:
        names = ", ".join(type(each.rule).__name__ for each in self._groups)
        return f"<ModuleOptimizer {names}: state of {len(self._slots)} params>"


def _stepped(
    param: Param, path: str, given: Any, lr: float, slot: Slot
) -> tuple[np.ndarray[Any, Any], State]:
    """Return the new value and state of one param."""
    if param.kind != "float" or param.dtype.kind == "quantized":
        raise ValueError(f"{path!r} is {param.dtype}, which cannot be stepped")
    if not param.require_grad:
        what = "a running state" if param.running else "frozen"
        raise ValueError(f"a gradient for {path!r}, which is {what}")
    value = param.value
    if value.dtype.kind == "u":
        raise ValueError(
            f"{path!r} is BF16; stepping it needs ml_dtypes: pip install 'bpk-lite[desktop]'"
        )
    grad = np.asarray(given)
    if grad.shape != value.shape or not _is_float(grad):
        raise ValueError(
            f"the gradient of {path!r} is {grad.dtype} {list(grad.shape)}, "
            f"expected floats of {list(value.shape)}"
        )
    grad = grad.astype(value.dtype, copy=False)
    shapes = slot.rule.shapes(value.shape)
    for name, leaf in slot.state.items():
        if name in shapes and np.shape(leaf) != shapes[name]:
            raise ValueError(
                f"the state {name!r} of {path!r} has shape {list(np.shape(leaf))}, "
                f"expected {list(shapes[name])}"
            )
    if slot.clipping is not None:
        grad = slot.clipping.clip(grad)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        stepped, state = slot.rule.step(value, grad, lr, slot.state)
    return stepped, state


def _is_float(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind == "f" or str(array.dtype) == "bfloat16"
