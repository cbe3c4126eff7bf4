"""AdaGrad, RMSProp and Lion (R97's table)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bpk_lite.optim._adam import averaged
from bpk_lite.optim._numbers import Array, f32, scalar
from bpk_lite.optim._rule import Leaf, State
from bpk_lite.optim._sgd import decayed

if TYPE_CHECKING:
    from bpk_lite.optim._clipping import Clipping

__all__ = ["AdaGradConfig", "LionConfig", "RmsPropConfig"]


@dataclass(frozen=True, slots=True)
class AdaGradConfig:
    """AdaGrad.

    Attributes:
        lr_decay: how fast the learning rate falls with the steps.
        epsilon: added to the root.
        weight_decay: coupled weight decay, or None.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (Leaf("lr_decay.time", tensor=False), Leaf("lr_decay.sum"))

    lr_decay: float = 0.0
    epsilon: float = 1e-5
    weight_decay: float | None = None
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        grad = decayed(param, grad, self.weight_decay)
        time = state.get("lr_decay.time", 0) + 1
        total = grad * grad
        if "lr_decay.sum" in state:
            total = state["lr_decay.sum"] + total
        rate = lr / (1 + (time - 1) * self.lr_decay)
        change = grad / (np.sqrt(total) + scalar(f32(self.epsilon), grad)) * scalar(rate, grad)
        return param - change, state | {"lr_decay.time": time, "lr_decay.sum": total}

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {"lr_decay.sum": shape}


@dataclass(frozen=True, slots=True)
class RmsPropConfig:
    """RMSProp. The default momentum is Burn's 0.9, not PyTorch's 0.

    Attributes:
        alpha: decay of the squared mean.
        momentum: of the scaled gradient; 0 for none.
        epsilon: added to the root.
        centered: subtract the squared mean of the gradient.
        weight_decay: coupled weight decay, or None.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (
        Leaf("square_avg.square_avg"),
        Leaf("centered.grad_avg", required=False),
        Leaf("centered.avg"),
        Leaf("momentum.buf", required=False),
    )

    alpha: float = 0.99
    momentum: float = 0.9
    epsilon: float = 1e-5
    centered: bool = False
    weight_decay: float | None = None
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        grad = decayed(param, grad, self.weight_decay)
        square = averaged(state.get("square_avg.square_avg"), grad * grad, self.alpha)
        new: State = {"square_avg.square_avg": square}
        variance = square
        if self.centered:
            mean = averaged(state.get("centered.grad_avg"), grad, self.alpha)
            new["centered.grad_avg"] = mean
            variance = square - mean * mean
        new["centered.avg"] = variance
        with np.errstate(invalid="ignore"):  # a centered variance can be slightly negative: NaN
            change = grad / (np.sqrt(variance) + scalar(f32(self.epsilon), grad))
        if self.momentum > 0:
            if "momentum.buf" in state:
                change = state["momentum.buf"] * scalar(f32(self.momentum), grad) + change
            new["momentum.buf"] = change
        return param - change * scalar(lr, grad), state | new

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {leaf.name: shape for leaf in self.leaves}


@dataclass(frozen=True, slots=True)
class LionConfig:
    """Lion: the sign of a momentum.

    Attributes:
        beta_1: of the momentum that gives the sign.
        beta_2: of the momentum that is kept.
        weight_decay: decoupled.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (Leaf("momentum"),)

    beta_1: float = 0.9
    beta_2: float = 0.99
    weight_decay: float = 0.0
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        old = state.get("momentum")
        change = np.sign(averaged(old, grad, self.beta_1))
        factor = 1 - lr * float(f32(self.weight_decay))
        if factor != 1:
            param = param * scalar(factor, param)
        new = averaged(old, grad, self.beta_2)
        return param - change * scalar(lr, grad), state | {"momentum": new}

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {"momentum": shape}
