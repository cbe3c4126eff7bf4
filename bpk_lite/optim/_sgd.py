"""SGD and what it shares with others: coupled weight decay and momentum (R96, R97)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bpk_lite.optim._numbers import Array, f32, scalar
from bpk_lite.optim._rule import Leaf, State

if TYPE_CHECKING:
    from bpk_lite.optim._clipping import Clipping

__all__ = ["Momentum", "SgdConfig", "decayed"]

VELOCITY = "momentum.velocity"


def decayed(param: Array, grad: Array, weight_decay: float | None) -> Array:
    """Return the gradient with a coupled weight decay (R96)."""
    return grad if weight_decay is None else param * scalar(f32(weight_decay), param) + grad


@dataclass(frozen=True, slots=True)
class Momentum:
    """A running mean of gradients (R97). The default dampening is Burn's 0.1, not PyTorch's 0.

    Attributes:
        momentum: share of the old velocity that stays.
        dampening: share of the new gradient that is left out, but for the first step.
        nesterov: look one step ahead.
    """

    momentum: float = 0.9
    dampening: float = 0.1
    nesterov: bool = False

    def apply(self, grad: Array, velocity: Array | None) -> tuple[Array, Array]:
        """Return the direction to go and the new velocity."""
        factor = scalar(f32(self.momentum), grad)
        after: Array = grad
        if velocity is not None:
            after = grad * scalar(1 - self.dampening, grad) + velocity * factor
        return (after * factor + grad if self.nesterov else after), after


@dataclass(frozen=True, slots=True)
class SgdConfig:
    """Stochastic gradient descent (R97).

    Attributes:
        weight_decay: coupled weight decay, or None.
        momentum: or None.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (Leaf(VELOCITY, required=False),)

    weight_decay: float | None = None
    momentum: Momentum | None = None
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        grad = decayed(param, grad, self.weight_decay)
        if self.momentum is not None:
            grad, velocity = self.momentum.apply(grad, state.get(VELOCITY))
            state = state | {VELOCITY: velocity}
        return param - grad * scalar(lr, grad), state

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {VELOCITY: shape}
