"""Collect tensors from a module, and apply tensors to one (S11 to S36).

Applying is planned first: every lookup, dtype, shape and every tensor that has to be made is tried
before the first param changes. So a store's strict load is all or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpk_lite.nn._cast import convert_tensor
from bpk_lite.pack import DType, Tensor
from bpk_lite.store._adapters import Adapter, IdentityAdapter
from bpk_lite.store._errors import NameCollision
from bpk_lite.store._result import ApplyIssue, ApplyResult
from bpk_lite.store._target import target_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpk_lite.store._filter import PathFilter
    from bpk_lite.store._target import Slot

__all__ = ["ApplyPlan", "apply", "collect"]

_IDENTITY = IdentityAdapter()
# what a boolean param takes beside booleans (S27)
_BYTES_AND_WORDS = (DType.U8, DType.U32)


def collect(
    module: Any,
    filter: PathFilter | None = None,
    adapter: Adapter | None = None,
    skip_enum_variants: bool = False,
) -> list[Tensor]:
    """Return a module's params as tensors in traversal order, lazily (S11 to S14).

    Args:
        module: of `bpk_lite.nn` or PyTorch.
        filter: which params, by the module's own names and containers.
        adapter: what to make of them.
        skip_enum_variants: leave variant names out of the paths (S6).

    Raises:
        NameCollision: two params get one name.
    """
    tensors: dict[str, Tensor] = {}
    origin: dict[str, str] = {}
    target, adapting = target_of(module).meeting(adapter or _IDENTITY)
    for slot in target.slots(skip_enum_variants=skip_enum_variants):
        if filter is not None and not filter.matches(slot.path, slot.context.path):
            continue
        tensor = adapting.adapt(slot.tensor(), slot.context)
        if tensor.name in tensors:
            raise NameCollision(
                f"{origin[tensor.name]!r} and {slot.path!r} would both be named {tensor.name!r}"
            )
        tensors[tensor.name], origin[tensor.name] = tensor, slot.path
    return list(tensors.values())


def apply(
    module: Any,
    tensors: Iterable[Tensor],
    filter: PathFilter | None = None,
    adapter: Adapter | None = None,
    skip_enum_variants: bool = False,
) -> ApplyResult:
    """Fill a module with what fits, and return what did and what did not (S218).

    Of two tensors with one name the last counts (S20). Params keep the dtype of the tensor they
    take (S30), and its id if it has one (S31).
    """
    plan = ApplyPlan.of(module, tensors, filter, adapter, skip_enum_variants)
    plan.commit()
    return plan.result


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What applying would do.

    Attributes:
        result: what it will have done.
    """

    result: ApplyResult
    _loads: tuple[tuple[Slot, Tensor], ...]

    @classmethod
    def of(
        cls,
        module: Any,
        tensors: Iterable[Tensor],
        filter: PathFilter | None = None,
        adapter: Adapter | None = None,
        skip_enum_variants: bool = False,
    ) -> ApplyPlan:
        """Look everything up, and make what has to be made; change nothing."""
        target, adapting = target_of(module).meeting(adapter or _IDENTITY)
        source = {tensor.name: tensor for tensor in tensors}
        used: set[str] = set()
        loads: list[tuple[Slot, Tensor]] = []
        skipped, missing, errors, converted = [], [], [], []
        slots = list(target.slots(skip_enum_variants=skip_enum_variants))
        names = [_found(slot, source, adapting) for slot in slots]
        there = {slot.shared for slot, name in zip(slots, names, strict=True) if name is not None}
        for slot, name in zip(slots, names, strict=True):
            if filter is not None and not filter.matches(slot.path, slot.context.path):
                skipped.append(slot.path)
                used.add(slot.path if name is None else name)
                continue
            if name is None:
                if not slot.optional and (slot.shared is None or slot.shared not in there):
                    missing.append((slot.path, slot.context.path))
                continue
            used.add(name)
            fitted = _fitted(slot, source[name], adapting)
            if isinstance(fitted, ApplyIssue):
                errors.append(fitted)
                continue
            loads.append((slot, fitted))
            if fitted.dtype != slot.dtype:
                converted.append((slot.path, str(slot.dtype), str(fitted.dtype)))
        result = ApplyResult(
            tuple(slot.path for slot, _ in loads),
            tuple(sorted(skipped)),
            tuple(sorted(missing)),
            tuple(sorted(name for name in source if name not in used)),
            tuple(errors),
            tuple(converted),
        )
        return cls(result, tuple(loads))

    def commit(self) -> None:
        """Fill the params; all that can fail is done before the first changes."""
        for change in [slot.prepare(tensor) for slot, tensor in self._loads]:
            change()


def _found(slot: Slot, source: dict[str, Tensor], adapter: Adapter) -> str | None:
    """Return the name under which a param's tensor is, its own or an alternative (S20 to S23)."""
    if slot.path in source:
        return slot.path
    if slot.context.module_type is None:
        return None
    prefix, dot, last = slot.path.rpartition(".")
    other = adapter.alternative_name(last, slot.context)
    name = None if other is None else prefix + dot + other
    return name if name in source else None


def _fitted(slot: Slot, tensor: Tensor, adapter: Adapter) -> Tensor | ApplyIssue:
    """Return what a param will take, or why it cannot (S24 to S31)."""
    try:
        adapted = adapter.adapt(tensor.replace(name=slot.path), slot.context)
        if not _kind_fits(slot.kind, adapted.dtype):
            return ApplyIssue("dtype", slot.path, str(slot.dtype), str(adapted.dtype))
        if adapted.is_deferred:
            adapted = Tensor.from_bytes(
                slot.path, adapted.dtype, adapted.shape, adapted.buffer(),
                param_id=adapted.param_id,
            )  # fmt: skip
        if slot.kind == "bool" and adapted.dtype != DType.BOOL:
            adapted = convert_tensor(adapted, DType.BOOL)
    except Exception as error:
        # a provider may raise anything; it is this tensor's affair, and named in the result
        return ApplyIssue("load", slot.path, "", f"{type(error).__name__}: {error}")
    if adapted.shape != slot.saved_shape:
        return ApplyIssue("shape", slot.path, str(list(slot.saved_shape)), str(list(adapted.shape)))
    if adapted.param_id is None:
        adapted = adapted.replace(param_id=slot.param_id)
    return adapted


def _kind_fits(kind: str, dtype: DType) -> bool:
    """Whether a param of `kind` takes `dtype` (S27)."""
    if kind == "float":
        return dtype.kind in ("float", "quantized")
    return dtype.kind == kind or (kind == "bool" and dtype in _BYTES_AND_WORDS)
