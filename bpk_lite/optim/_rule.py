"""What an optimizer is here: a configuration that steps one param, and the leaves of its state.

A state is a dict from leaf name, as it stands behind ``{param_id}.`` in a record, to a tensor or a
number, in file order. Leaves that a configuration does not use are carried along: an SGD without
momentum keeps a velocity that it was given and writes it again (R53).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

if TYPE_CHECKING:
    from bpk_lite.optim._clipping import Clipping
    from bpk_lite.optim._numbers import Array

__all__ = ["Leaf", "Rule", "State"]

State: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One named part of a state (R39).

    Attributes:
        name: behind the param's prefix.
        tensor: whether it is a tensor; otherwise an unsigned integer.
        required: whether a state without it cannot be rebuilt (R41).
    """

    name: str
    tensor: bool = True
    required: bool = True


class Rule(Protocol):
    """The configuration of an optimizer: a frozen dataclass with Burn's names and defaults."""

    leaves: ClassVar[tuple[Leaf, ...]]
    """All leaves that a state may have, in file order (R51)."""

    @property
    def grad_clipping(self) -> Clipping | None:
        """How each param's gradient is clipped first, or None (R95)."""
        ...

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step; `state` is empty at the first.

        Neither input is changed. `param` and `grad` have one shape and one float dtype.
        """
        ...

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shape of each tensor leaf for a param of `shape`."""
        ...
