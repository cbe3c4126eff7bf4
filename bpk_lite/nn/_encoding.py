"""Encodings of positions; their tables are no params and are not stored (R17, R126)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._module import Module

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["PositionalEncoding", "RotaryEncoding"]


class PositionalEncoding(Module):
    """Sines and cosines of the position, added (R126).

    Attributes:
        sinusoids: float32 ``[max_sequence_size, d_model]``: even columns the sine, odd ones the
            cosine of ``pos · e^(-2i · ln(max_timescale) / d_model)``.
    """

    def __init__(
        self, d_model: int, *, max_sequence_size: int = 5000, max_timescale: int = 10_000
    ) -> None:
        if d_model < 2 or d_model % 2:
            raise ValueError(f"d_model is an even number from 2, not {d_model}")
        rates = np.exp(np.arange(0, d_model, 2) * -(math.log(max_timescale) / d_model))
        angles = np.arange(max_sequence_size)[:, None] * rates
        table = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
        self.sinusoids = table.reshape(max_sequence_size, d_model).astype(np.float32)

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[batch, steps, d_model]`` to the same shape.

        Raises:
            ValueError: If it has another rank, other features or too many steps.
        """
        inputs = _expect(self, as_floats(x), self.sinusoids.shape[1], len(self.sinusoids))
        if inputs.ndim != 3:
            raise ValueError(f"PositionalEncoding expects 3 dimensions, not {inputs.ndim}")
        out: NDArray[Any] = inputs + self.sinusoids[: inputs.shape[1]].astype(inputs.dtype)
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{self.sinusoids.shape[1]}, up to {len(self.sinusoids)} steps"


class RotaryEncoding(Module):
    """Pairs of neighbouring features, turned by an angle that grows with the position (R126).

    Attributes:
        cosines, sines: float32 ``[max_sequence_length, d_model / 2]`` of ``pos · theta^(-2i/d)``.
    """

    def __init__(self, max_sequence_length: int, d_model: int, *, theta: float = 10_000.0) -> None:
        if d_model < 2 or d_model % 2:
            raise ValueError(f"d_model is an even number from 2, not {d_model}")
        rates = theta ** -(np.arange(0, d_model, 2) / d_model)
        angles = np.arange(max_sequence_length)[:, None] * rates
        self.cosines = np.cos(angles).astype(np.float32)
        self.sines = np.sin(angles).astype(np.float32)

    def forward(self, x: ArrayLike, start: int = 0) -> NDArray[Any]:
        """Map ``[…, steps, d_model]`` to the same shape.

        Args:
            x: the features.
            start: the position of the first step.

        Raises:
            ValueError: If it has other features, or a step lies behind the table.
        """
        length, pairs = self.cosines.shape
        inputs = _expect(self, as_floats(x), 2 * pairs, length - start)
        rows = slice(start, start + inputs.shape[-2])
        cosine, sine = (table[rows].astype(inputs.dtype) for table in (self.cosines, self.sines))
        even, odd = inputs[..., 0::2], inputs[..., 1::2]
        turned = np.stack([even * cosine - odd * sine, odd * cosine + even * sine], axis=-1)
        return turned.reshape(inputs.shape)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return f"{2 * self.cosines.shape[1]}, up to {len(self.cosines)} steps"


def _expect(layer: Module, x: NDArray[Any], features: int, steps: int) -> NDArray[Any]:
    if x.ndim < 2 or x.shape[-1] != features or x.shape[-2] > steps:
        raise ValueError(
            f"{type(layer).__name__} expects […, up to {steps} steps, {features}], "
            f"the input is {list(x.shape)}"
        )
    return x
