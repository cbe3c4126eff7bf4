"""Channels into pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpk_lite.nn._module import Module

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["PixelShuffle"]


class PixelShuffle(Module):
    """Channel ``c·r² + r·i + j`` goes to row offset i and column offset j of channel c (R126).

    Attributes:
        upscale_factor: r, how many times higher and wider the output is.
    """

    def __init__(self, upscale_factor: int) -> None:
        if upscale_factor < 1:
            raise ValueError(f"upscale_factor is an integer from 1, not {upscale_factor}")
        self.upscale_factor = upscale_factor

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, c · r², h, w]`` to ``[n, c, h · r, w · r]``.

        Raises:
            ValueError: If the rank is not 4 or r² does not divide the channels.
        """
        inputs, r = np.asarray(x), self.upscale_factor
        if inputs.ndim != 4 or inputs.shape[1] % (r * r):
            raise ValueError(
                f"PixelShuffle expects [n, c·{r * r}, height, width], "
                f"the input is {list(inputs.shape)}"
            )
        n, channels, high, wide = inputs.shape
        parts = inputs.reshape(n, channels // (r * r), r, r, high, wide)
        return parts.transpose(0, 1, 4, 2, 5, 3).reshape(n, channels // (r * r), high * r, wide * r)

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return str(self.upscale_factor)
