"""The schedulers with formulas (R66). Configurations that Burn refuses are refused here."""

from __future__ import annotations

import math
from typing import ClassVar

from bpk_lite.optim.lr._base import Number, Scheduler

__all__ = ["Constant", "Cosine", "Exponential", "Linear", "Noam", "Step"]

_WORD = 1 << 64


def _expect(right: bool, name: str, value: float, words: str) -> None:
    if not right:
        raise ValueError(f"{name} is {value}, expected {words}")


class Constant(Scheduler):
    """Always the same rate."""

    def __init__(self, lr: float) -> None:
        self.lr = lr

    def step(self) -> float:
        """Return the rate."""
        return self.lr


class Linear(Scheduler):
    """A straight line from `initial` to `final` over `num_iters` calls, then `final`.

    Raises:
        ValueError: initial is not in (0, 1], final not in [0, 1], or num_iters below 1.
    """

    number: ClassVar[Number | None] = Number("remaining_iters", "UInt")

    def __init__(self, initial: float, final: float, num_iters: int) -> None:
        # written so that NaN passes, as it does in Burn
        _expect(not (initial <= 0 or initial > 1), "initial", initial, "above 0 and up to 1")
        _expect(not (final < 0 or final > 1), "final", final, "0 to 1")
        _expect(num_iters >= 1, "num_iters", num_iters, "at least 1")
        self.final = final
        self.slope = (final - initial) / num_iters
        self.remaining_iters = num_iters + 1

    def step(self) -> float:
        """Return the next rate."""
        self.remaining_iters = max(self.remaining_iters - 1, 0)
        return self.final - self.slope * self.remaining_iters


class Cosine(Scheduler):
    """Half a cosine from `initial` to `min_lr` over `num_iters` calls; it goes on, no restart.

    Raises:
        ValueError: initial is not in (0, 1], min_lr not in [0, initial], or num_iters below 1.
    """

    number: ClassVar[Number | None] = Number("current_iter", "UInt")

    def __init__(self, initial: float, num_iters: int, min_lr: float = 0.0) -> None:
        _expect(0 < initial <= 1, "initial", initial, "above 0 and up to 1")
        _expect(0 <= min_lr <= initial, "min_lr", min_lr, "0 to initial")
        _expect(num_iters >= 1, "num_iters", num_iters, "at least 1")
        self.initial, self.min_lr, self.num_iters = initial, min_lr, num_iters
        self.current_iter = _WORD - 1  # wraps to 0 at the first call (R62)

    def step(self) -> float:
        """Return the next rate."""
        self.current_iter = (self.current_iter + 1) % _WORD
        angle = self.current_iter / self.num_iters * math.pi
        return self.min_lr + 0.5 * (self.initial - self.min_lr) * (1 + math.cos(angle))


class Exponential(Scheduler):
    """`initial`, then times `gamma` at every call.

    Raises:
        ValueError: initial or gamma is not in (0, 1].
    """

    number: ClassVar[Number | None] = Number("previous_lr", "Float")

    def __init__(self, initial: float, gamma: float) -> None:
        _expect(0 < initial <= 1, "initial", initial, "above 0 and up to 1")
        _expect(0 < gamma <= 1, "gamma", gamma, "above 0 and up to 1")
        self.gamma = gamma
        self.previous_lr = initial / gamma

    def step(self) -> float:
        """Return the next rate."""
        self.previous_lr *= self.gamma
        return self.previous_lr


class Noam(Scheduler):
    """Up for `warmup_steps` calls, then down by the inverse root, scaled by the model's size.

    Raises:
        ValueError: warmup_steps or model_size is below 1.
    """

    number: ClassVar[Number | None] = Number("step", "Float", attribute="step_count")

    def __init__(self, factor: float, warmup_steps: int = 4000, model_size: int = 512) -> None:
        _expect(warmup_steps >= 1, "warmup_steps", warmup_steps, "at least 1")
        _expect(model_size >= 1, "model_size", model_size, "at least 1")
        self.factor, self.warmup_steps, self.model_size = factor, warmup_steps, model_size
        self.step_count = 0.0

    def step(self) -> float:
        """Return the next rate."""
        self.step_count += 1
        warm: float = self.step_count * float(self.warmup_steps) ** -1.5
        scale: float = self.factor * float(self.model_size) ** -0.5
        cold: float = self.step_count**-0.5
        return scale * min(cold, warm)


class Step(Scheduler):
    """`initial`, times `gamma` after every `step_size` calls.

    Raises:
        ValueError: step_size is below 1.
    """

    number: ClassVar[Number | None] = Number("iter_idx", "Int", 32)

    def __init__(self, initial: float, step_size: int, gamma: float = 0.1) -> None:
        _expect(step_size >= 1, "step_size", step_size, "at least 1")
        self.initial, self.step_size, self.gamma = initial, step_size, gamma
        self.iter_idx = -1

    def step(self) -> float:
        """Return the next rate.

        Raises:
            OverflowError: beyond 2^31 - 1 calls, where Burn's counter ends.
        """
        if self.iter_idx == (1 << 31) - 1:
            raise OverflowError("a step scheduler counts up to 2^31 - 1 calls")
        self.iter_idx += 1
        # a negative count is taken as unsigned, and its power as 0 or infinite (R109)
        quotient = (self.iter_idx % _WORD) // self.step_size
        return self.initial * _power(self.gamma, quotient)


def _power(base: float, exponent: int) -> float:
    """Return ``base ** exponent`` in binary64 by repeated squaring."""
    result = 1.0
    while True:
        if exponent & 1:
            result *= base
        exponent >>= 1
        if not exponent:
            return result
        base *= base
