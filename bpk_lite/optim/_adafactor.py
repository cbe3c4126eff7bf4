"""Adafactor: second moments by rows and columns (R97's table, R99)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bpk_lite.optim._numbers import Array, f32, scalar
from bpk_lite.optim._rule import Leaf, State

if TYPE_CHECKING:
    from bpk_lite.optim._clipping import Clipping

__all__ = ["AdafactorConfig"]


@dataclass(frozen=True, slots=True)
class AdafactorConfig:
    """Adafactor. F16 and BF16 params are stepped in F32, and their state is F32.

    Attributes:
        epsilon_1: added to squared gradients.
        epsilon_2: least scale of a param.
        clip_threshold: of the root mean square of a step.
        decay_rate: exponent by which old moments fade; negative.
        weight_decay: decoupled, by the learning rate.
        relative_step: bound the step size by the inverse root of the time.
        scale_parameter: scale the step by the root mean square of the param.
        grad_clipping: or None.

    Raises:
        ValueError: a value out of its range (R99).
    """

    leaves: ClassVar[tuple[Leaf, ...]] = (
        Leaf("time", tensor=False),
        Leaf("second_moment"),
        Leaf("column_second_moment", required=False),
    )

    epsilon_1: float = 1e-30
    epsilon_2: float = 1e-3
    clip_threshold: float = 1.0
    decay_rate: float = -0.8
    weight_decay: float = 0.0
    relative_step: bool = True
    scale_parameter: bool = True
    grad_clipping: Clipping | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon_1", "epsilon_2", "clip_threshold"):
            self._expect(name, getattr(self, name) > 0, "positive")
        self._expect("decay_rate", self.decay_rate < 0, "negative")
        self._expect("weight_decay", self.weight_decay >= 0, "not negative")

    def _expect(self, name: str, right: bool, words: str) -> None:
        value = getattr(self, name)
        if not (right and math.isfinite(value)):
            raise ValueError(f"Adafactor's {name} is {value}, expected {words} and finite")

    def step(self, param: Array, grad: Array, lr: float, state: State) -> tuple[Array, State]:
        """Return the param and the state after one step.

        Raises:
            ValueError: the state has no columns, though the param has rows and columns (R53).
        """
        given = param.dtype
        if given.itemsize == 2:
            param, grad = param.astype(np.float32), grad.astype(np.float32)
        time = state.get("time", 0) + 1
        decay = time**self.decay_rate
        square = grad * grad + scalar(f32(self.epsilon_1), grad)
        new: State = {"time": time}
        if grad.ndim >= 2:
            if state and "column_second_moment" not in state:
                raise ValueError("Adafactor's state has no column_second_moment")
            rows = _mixed(state.get("second_moment"), _mean(square, -1), decay)
            columns = _mixed(state.get("column_second_moment"), _mean(square, -2), decay)
            new |= {"second_moment": rows, "column_second_moment": columns}
            change = grad / np.sqrt(rows / _mean(rows, -2)) / np.sqrt(columns)
        else:
            new["second_moment"] = _mixed(state.get("second_moment"), square, decay)
            change = grad / np.sqrt(new["second_moment"])
        clip = np.maximum(_rms(change) / scalar(f32(self.clip_threshold), grad), grad.dtype.type(1))
        change = change / clip
        if self.scale_parameter:
            change = change * np.maximum(_rms(param), scalar(f32(self.epsilon_2), grad))
        size = min(lr, 1 / math.sqrt(time)) if self.relative_step else lr
        change = change * scalar(size, grad)
        if f32(self.weight_decay) != 0:
            param = param * scalar(1 - lr * float(f32(self.weight_decay)), param)
        moved: Array = param - change
        return moved.astype(given, copy=False), state | new

    def shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the state's tensors."""
        if len(shape) < 2:
            return {"second_moment": shape}
        return {
            "second_moment": (*shape[:-1], 1),
            "column_second_moment": (*shape[:-2], 1, shape[-1]),
        }


def _mean(values: Array, axis: int) -> Array:
    total: Array = np.sum(values, axis=axis, keepdims=True, dtype=values.dtype)
    mean: Array = total / scalar(values.shape[axis], values)
    return mean


def _rms(values: Array) -> Array:
    squares = np.sum(values * values, dtype=values.dtype)
    root: Array = np.sqrt(squares / scalar(values.size, values))
    return root


def _mixed(old: Array | None, new: Array, decay: float) -> Array:
    return new if old is None else old * scalar(1 - decay, new) + new * scalar(decay, new)
