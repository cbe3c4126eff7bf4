"""Burn's two enums of layers: which activation, which normalisation (R91)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bpk_lite.nn._batch_norm import BatchNorm
from bpk_lite.nn._module import Module, Variant
from bpk_lite.nn._norm import GroupNorm, InstanceNorm, LayerNorm, RmsNorm

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Activation", "Normalization"]

_NORMS: Final[Mapping[type[Module], str]] = {
    BatchNorm: "Batch",
    GroupNorm: "Group",
    InstanceNorm: "Instance",
    LayerNorm: "Layer",
    RmsNorm: "Rms",
}


class Activation(Variant):
    """An activation as a variant: its params lie below its class name, as ``act.PRelu.alpha``."""

    def __init__(self, module: Module) -> None:
        super().__init__(type(module).__name__, module)


class Normalization(Variant):
    """A normalisation as a variant: its params lie below a short name, as ``norm.Group.gamma``.

    Raises:
        ValueError: If `module` is none of the five normalisations that the enum has.
    """

    def __init__(self, module: Module) -> None:
        name = _NORMS.get(type(module))
        if name is None:
            expected = ", ".join(sorted(norm.__name__ for norm in _NORMS))
            raise ValueError(f"a normalization is one of {expected}, not {type(module).__name__}")
        super().__init__(name, module)
