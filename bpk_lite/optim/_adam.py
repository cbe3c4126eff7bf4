"""Adam and its kin: AdamW, LAMB, Adan (R97's table)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bpk_lite.optim._numbers import Array, f32, power, scalar, tiny
from bpk_lite.optim._rule import Leaf, State
from bpk_lite.optim._sgd import decayed

if TYPE_CHECKING:
    from bpk_lite.optim._clipping import Clipping

__all__ = ["AdamConfig", "AdamWConfig", "AdanConfig", "LambConfig"]

_ADAM = (
    Leaf("momentum.time", tensor=False),
    Leaf("momentum.moment_1"),
    Leaf("momentum.moment_2"),
    Leaf("momentum.max_moment_2", required=False),
)


def one_minus(value: float | np.float32) -> np.float32:
    """Return ``1 - value`` in binary32."""
    return f32(f32(1) - f32(value))


def averaged(old: Array | None, new: Array, beta: float) -> Array:
    """Return ``old * beta + new * (1 - beta)``; at the first step the second term alone."""
    fresh: Array = new * scalar(one_minus(beta), new)
    if old is not None:
        fresh = old * scalar(f32(beta), new) + fresh
    return fresh


@dataclass(frozen=True, slots=True)
class AdamConfig:
    """Adam, with a coupled weight decay if any. The default epsilon is Burn's 1e-5.

    Attributes:
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root.
        amsgrad: use the largest second moment so far.
        weight_decay: coupled weight decay, or None.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = _ADAM

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    amsgrad: bool = False
    weight_decay: float | None = None
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        grad = decayed(param, grad, self.weight_decay)
        time, first, second, state = _moments(grad, state, self.beta_1, self.beta_2, self.amsgrad)
        root = np.sqrt(one_minus(power(self.beta_2, time)))
        scale = f32(root / one_minus(power(self.beta_1, time)))
        change = (first * scalar(scale, grad)) / (
            np.sqrt(second) + scalar(f32(f32(self.epsilon) * root), grad)
        )
        return param - change * scalar(lr, grad), state

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {leaf.name: shape for leaf in _ADAM if leaf.tensor}


@dataclass(frozen=True, slots=True)
class AdamWConfig:
    """Adam with decoupled weight decay. State and names are Adam's (R53).

    Attributes:
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root.
        weight_decay: decoupled weight decay.
        amsgrad: use the largest second moment so far.
        cautious_weight_decay: decay only where param and first moment have one sign.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = _ADAM

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    weight_decay: float = 1e-4
    amsgrad: bool = False
    cautious_weight_decay: bool = False
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        time, first, second, state = _moments(grad, state, self.beta_1, self.beta_2, self.amsgrad)
        change = _corrected(first, second, time, self.beta_1, self.beta_2, self.epsilon)
        rate = lr * float(f32(self.weight_decay))
        if rate != 0 and self.cautious_weight_decay:
            agree = (param >= 0) == (first >= 0)
            param = param - np.where(agree, param * scalar(rate, param), scalar(0, param))
        elif rate != 0:
            param = param * scalar(1 - rate, param)
        return param - change * scalar(lr, grad), state

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {leaf.name: shape for leaf in _ADAM if leaf.tensor}


@dataclass(frozen=True, slots=True)
class LambConfig:
    """LAMB: Adam's direction, scaled by the ratio of the norms of param and direction.

    Attributes:
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root.
        weight_decay: added to the direction.
        use_trust_ratio: scale by the ratio of norms.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (
        Leaf("time", tensor=False),
        Leaf("moment_1"),
        Leaf("moment_2"),
    )

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.0
    use_trust_ratio: bool = True
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        time = state.get("time", 0) + 1
        first = averaged(state.get("moment_1"), grad, self.beta_1)
        second = averaged(state.get("moment_2"), grad * grad, self.beta_2)
        change = _corrected(first, second, time, self.beta_1, self.beta_2, self.epsilon)
        if f32(self.weight_decay) != 0:
            change = change + param * scalar(f32(self.weight_decay), param)
        if self.use_trust_ratio:
            norms = [np.sqrt(np.sum(x * x, dtype=x.dtype)) for x in (param, change)]
            if norms[0] > 0 and norms[1] > 0:
                change = change * (norms[0] / np.maximum(norms[1], scalar(tiny(grad), grad)))
        state = state | {"time": time, "moment_1": first, "moment_2": second}
        return param - change * scalar(lr, grad), state

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {leaf.name: shape for leaf in self.leaves if leaf.tensor}


@dataclass(frozen=True, slots=True)
class AdanConfig:
    """Adan: moments of the gradient, of its change, and of both.

    Attributes:
        beta_1: decay of the gradient's mean.
        beta_2: decay of the mean of its changes.
        beta_3: decay of the squared mean.
        epsilon: added to the root.
        weight_decay: decoupled.
        no_prox: decay before the step instead of dividing after it.
        grad_clipping: or None.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (
        Leaf("momentum.time", tensor=False),
        Leaf("momentum.exp_avg"),
        Leaf("momentum.exp_avg_sq"),
        Leaf("momentum.exp_avg_diff"),
        Leaf("momentum.neg_pre_grad"),
    )

    beta_1: float = 0.98
    beta_2: float = 0.92
    beta_3: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    no_prox: bool = False
    grad_clipping: Clipping | None = None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step."""
        time = state.get("momentum.time", 0) + 1
        average = averaged(state.get("momentum.exp_avg"), grad, self.beta_1)
        beta_2 = scalar(f32(self.beta_2), grad)
        if state:
            change = state["momentum.neg_pre_grad"] + grad
            difference = averaged(state["momentum.exp_avg_diff"], change, self.beta_2)
            ahead = change * beta_2 + grad
            square = averaged(state["momentum.exp_avg_sq"], ahead * ahead, self.beta_3)
        else:
            difference = np.zeros_like(grad)
            square = averaged(None, grad * grad, self.beta_3)
        divisor = np.sqrt(square) / scalar(
            np.sqrt(one_minus(power(self.beta_3, time))), grad
        ) + scalar(f32(self.epsilon), grad)
        step = average / scalar(one_minus(power(self.beta_1, time)), grad) / divisor
        scale = f32(f32(self.beta_2) / one_minus(power(self.beta_2, time)))
        step = step + difference * scalar(scale, grad) / divisor
        rate = lr * float(f32(self.weight_decay))
        if rate != 0 and self.no_prox:
            param = param * scalar(1 - rate, param)
        param = param - step * scalar(lr, grad)
        if rate != 0 and not self.no_prox:
            param = param / scalar(1 + rate, param)
        return param, state | {
            "momentum.time": time,
            "momentum.exp_avg": average,
            "momentum.exp_avg_sq": square,
            "momentum.exp_avg_diff": difference,
            "momentum.neg_pre_grad": -grad,
        }

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {leaf.name: shape for leaf in self.leaves if leaf.tensor}


def _moments(
    grad: Array, state: State, beta_1: float, beta_2: float, amsgrad: bool
) -> tuple[int, Array, Array, State]:
    """Return time, first moment, the second moment to divide by, and the new state."""
    time = state.get("momentum.time", 0) + 1
    first = averaged(state.get("momentum.moment_1"), grad, beta_1)
    second = averaged(state.get("momentum.moment_2"), grad * grad, beta_2)
    new = {"momentum.time": time, "momentum.moment_1": first, "momentum.moment_2": second}
    if amsgrad:
        # a state without it starts it as the moment of this step (R52)
        largest = np.maximum(state.get("momentum.max_moment_2", second), second)
        return time, first, largest, state | new | {"momentum.max_moment_2": largest}
    return time, first, second, state | new


def _corrected(
    first: Array, second: Array, time: int, beta_1: float, beta_2: float, epsilon: float
) -> Array:
    """Return the direction with both moments corrected for their start at zero."""
    mean = first / scalar(one_minus(power(beta_1, time)), first)
    root = np.sqrt(second / scalar(one_minus(power(beta_2, time)), first))
    direction: Array = mean / (root + scalar(f32(epsilon), first))
    return direction
