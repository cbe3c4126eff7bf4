"""Normalisation by the statistics of the input itself (R120).

Variances are the biased ones, and ε is inside the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._module import Module
from bpk_lite.nn._param import Param
from bpk_lite.nn.init import Ones, Zeros

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["GroupNorm", "InstanceNorm", "LayerNorm", "LocalResponseNorm", "RmsNorm"]


class LayerNorm(Module):
    """``(x - mean) / √(var + ε) · gamma + beta`` over the last dimension (R120).

    Attributes:
        gamma: F32 ``[d_model]``, the scale.
        beta: F32 ``[d_model]``, the shift, or None.
        epsilon: added to the variance.
    """

    def __init__(self, d_model: int, *, epsilon: float = 1e-5, bias: bool = True) -> None:
        self.gamma = Param((d_model,), Ones())
        self.beta = Param((d_model,), Zeros()) if bias else None
        self.epsilon = epsilon

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[…, d_model]`` to the same shape.

        Raises:
            ValueError: If the last dimension is not `d_model`.
        """
        inputs = _expect_last(self, as_floats(x), self.gamma)
        out = _standardised(inputs, self.epsilon)
        out *= self.gamma.operand()
        if self.beta is not None:
            out += self.beta.operand()
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{self.gamma.shape[0]}, epsilon={self.epsilon}"


class RmsNorm(Module):
    """``x / √(mean x² + ε) · gamma`` over the last dimension (R120).

    Attributes:
        gamma: F32 ``[d_model]``, the scale.
        epsilon: added to the mean square.
    """

    def __init__(self, d_model: int, *, epsilon: float = 1e-5) -> None:
        self.gamma = Param((d_model,), Ones())
        self.epsilon = epsilon

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[…, d_model]`` to the same shape.

        Raises:
            ValueError: If the last dimension is not `d_model`.
        """
        inputs = _expect_last(self, as_floats(x), self.gamma)
        square = np.square(inputs).mean(axis=-1, keepdims=True)
        out: NDArray[Any] = inputs / np.sqrt(square + square.dtype.type(self.epsilon))
        out *= self.gamma.operand()
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{self.gamma.shape[0]}, epsilon={self.epsilon}"


class GroupNorm(Module):
    """Mean and variance over each group of channels and all positions (R120).

    Attributes:
        gamma: F32 ``[num_channels]``, the scale of each channel, or None.
        beta: F32 ``[num_channels]``, the shift of each channel, or None.
        num_groups: how many groups the channels fall into.
        num_channels: the size of dimension 1.
        epsilon: added to the variance.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        *,
        epsilon: float = 1e-5,
        affine: bool = True,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"{num_groups} groups do not divide {num_channels} channels")
        self.gamma = Param((num_channels,), Ones()) if affine else None
        self.beta = Param((num_channels,), Zeros()) if affine else None
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.epsilon = epsilon

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, num_channels, …]`` to the same shape.

        Raises:
            ValueError: If dimension 1 is not `num_channels`.
        """
        inputs = as_floats(x)
        if inputs.ndim < 2 or inputs.shape[1] != self.num_channels:
            raise ValueError(
                f"{type(self).__name__} expects [n, {self.num_channels}, …], "
                f"the input is {list(inputs.shape)}"
            )
        size = inputs[:1].size // self.num_groups
        parts = inputs.reshape(len(inputs), self.num_groups, size)
        out = _standardised(parts, self.epsilon).reshape(inputs.shape)
        if self.gamma is not None and self.beta is not None:
            shape = (self.num_channels, *(1,) * (inputs.ndim - 2))
            out *= self.gamma.operand().reshape(shape)
            out += self.beta.operand().reshape(shape)
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        text = f"{self.num_groups} groups of {self.num_channels}, epsilon={self.epsilon}"
        return text if self.gamma is not None else f"{text}, not affine"


class InstanceNorm(GroupNorm):
    """`GroupNorm` with a group for each channel (R120)."""

    def __init__(self, num_channels: int, *, epsilon: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_channels, num_channels, epsilon=epsilon, affine=affine)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        text = f"{self.num_channels}, epsilon={self.epsilon}"
        return text if self.gamma is not None else f"{text}, not affine"


class LocalResponseNorm(Module):
    """``x / (k + alpha/size · Σ x²)^beta`` with the sum over neighbouring channels (R120).

    The sum of channel i goes from ``i - size div 2`` to ``i + (size - 1) div 2``.

    Attributes:
        size: how many channels a sum has.
        alpha, beta, k: as in the formula.
    """

    def __init__(
        self, size: int, *, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        if size < 1:
            raise ValueError(f"size is an integer from 1, not {size}")
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, channels, …]`` to the same shape.

        Raises:
            ValueError: If the rank is below 2.
        """
        inputs = as_floats(x)
        if inputs.ndim < 2:
            raise ValueError(
                f"LocalResponseNorm expects [n, channels, …], the input is {list(inputs.shape)}"
            )
        squares, sums = np.square(inputs), np.zeros_like(inputs)
        channels = inputs.shape[1]
        for shift in range(-(self.size // 2), (self.size - 1) // 2 + 1):
            low, high = max(0, -shift), min(channels, channels - shift)
            if low < high:
                sums[:, low:high] += squares[:, low + shift : high + shift]
        number = inputs.dtype.type
        out: NDArray[Any] = inputs / (number(self.k) + number(self.alpha / self.size) * sums) ** (
            number(self.beta)
        )
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"size={self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _expect_last(layer: Module, inputs: NDArray[Any], gamma: Param) -> NDArray[Any]:
    if inputs.shape[-1:] != gamma.shape:
        raise ValueError(
            f"{type(layer).__name__} expects […, {gamma.shape[0]}], "
            f"the input is {list(inputs.shape)}"
        )
    return inputs


def _standardised(inputs: NDArray[Any], epsilon: float) -> NDArray[Any]:
    """Return `inputs` with mean 0 and variance 1 along the last dimension; a new array."""
    if not inputs.size:
        return inputs.copy()
    out: NDArray[Any] = inputs - inputs.mean(axis=-1, keepdims=True)
    variance = np.square(out).mean(axis=-1, keepdims=True)
    out /= np.sqrt(variance + variance.dtype.type(epsilon))
    return out
