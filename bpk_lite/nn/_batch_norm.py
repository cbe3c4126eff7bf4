"""Batch normalisation by running statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._module import Module
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import Ones, Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["BatchNorm"]


class BatchNorm(Module):
    """``(x - mean) / √(var + ε) · gamma + beta`` over dimension 1, at any rank from 2 (R120).

    The mean and the variance are the running states; whatever a training flag says, inference
    uses them (records.md section 13).

    Attributes:
        gamma: F32 ``[num_features]``, the scale.
        beta: F32 ``[num_features]``, the shift.
        running_mean: F32 ``[num_features]``, a running state.
        running_var: F32 ``[num_features]``, a running state.
        momentum: how fast training would move the running states.
        epsilon: added to the variance.
    """

    def __init__(self, num_features: int, *, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        shape = (num_features,)
        self.gamma = Param(shape, Ones())
        self.beta = Param(shape, Zeros())
        self.running_mean = Param(shape, Zeros(), running=True)
        self.running_var = Param(shape, Ones(), running=True)
        self.momentum = momentum
        self.epsilon = epsilon

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, num_features, …]`` to the same shape.

        Raises:
            ValueError: If dimension 1 is not `num_features`.
        """
        inputs = as_floats(x)
        (features,) = self.gamma.shape
        if inputs.ndim < 2 or inputs.shape[1] != features:
            raise ValueError(
                f"BatchNorm expects [n, {features}, …], the input is {list(inputs.shape)}"
            )
        shape = (1, features) + (1,) * (inputs.ndim - 2)
        deviation = np.sqrt(self.running_var.operand() + self.epsilon)
        scale = self.gamma.operand() / deviation
        # The mean is taken off first: folding it into the shift would cancel digits away.
        out: NDArray[Any] = inputs - self.running_mean.operand().reshape(shape)
        out *= scale.reshape(shape)
        out += self.beta.operand().reshape(shape)
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{self.gamma.shape[0]}, epsilon={self.epsilon}"
