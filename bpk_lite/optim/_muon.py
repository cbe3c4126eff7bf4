"""Muon: momentum, orthogonalised by Newton-Schulz iterations (R97's table)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from bpk_lite.optim._numbers import Array, f32, scalar
from bpk_lite.optim._rule import Leaf, State
from bpk_lite.optim._sgd import VELOCITY, Momentum

if TYPE_CHECKING:
    from bpk_lite.optim._clipping import Clipping

__all__ = ["MuonConfig"]


@dataclass(frozen=True, slots=True)
class MuonConfig:
    """Muon, for params of two dimensions. Its configuration has no clipping; a group may.

    Attributes:
        momentum: Burn's default has no dampening and is Nesterov's.
        coefficients: of the iteration.
        steps: number of iterations.
        epsilon: least norm to divide by.
        weight_decay: decoupled, or None.
        adjust_lr: ``"original"`` scales by the shape, ``"match_rms_adamw"`` to AdamW's size.
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (Leaf(VELOCITY),)

    momentum: Momentum = field(default_factory=lambda: Momentum(0.95, 0.0, nesterov=True))
    coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315)
    steps: int = 5
    epsilon: float = 1e-7
    weight_decay: float | None = None
    adjust_lr: Literal["original", "match_rms_adamw"] = "original"

    @property
    def grad_clipping(self) -> Clipping | None:
        """None: there is no such setting."""
        return None

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step.

        Raises:
            ValueError: the param has not two dimensions.
        """
        if param.ndim != 2:
            raise ValueError(f"Muon steps params of two dimensions, not {list(param.shape)}")
        direction, velocity = self.momentum.apply(grad, state.get(VELOCITY))
        direction = self._orthogonal(direction)
        rows, columns = param.shape
        if self.adjust_lr == "original":
            adjusted = lr * math.sqrt(max(1.0, rows / columns))
        else:
            adjusted = lr * 0.2 * math.sqrt(max(rows, columns))
        if self.weight_decay is not None:
            param = param * scalar(1 - lr * float(f32(self.weight_decay)), param)
        return param - direction * scalar(adjusted, grad), state | {VELOCITY: velocity}

    def _orthogonal(self, matrix: Array) -> Array:
        a, b, c = (scalar(f32(value), matrix) for value in self.coefficients)
        tall = matrix.shape[0] > matrix.shape[1]
        x: Array = matrix.T if tall else matrix
        norm = np.sqrt(np.sum(x * x, dtype=x.dtype))
        x = x / np.maximum(norm, scalar(f32(self.epsilon), x))
        for _ in range(self.steps):
            square = x @ x.T
            x = x * a + (square * b + (square @ square) * c) @ x
        return x.T if tall else x

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        return {VELOCITY: shape}
