"""Average pools that are told the size of their output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bpk_lite.nn._arrays import as_floats
from bpk_lite.nn._module import Module
from bpk_lite.nn._padding import AXES, Sizes, as_sizes, by

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d"]


class _AdaptiveAvgPool(Module):
    dims: ClassVar[int]

    def __init__(self, output_size: Sizes) -> None:
        self.output_size = as_sizes(output_size, self.dims, "output_size")

    def forward(self, x: ArrayLike) -> NDArray[Any]:
        """Map ``[n, channels, …]`` to ``[n, channels, *output_size]``.

        Raises:
            ValueError: If the rank differs, or a dimension is empty.
        """
        out = as_floats(x)
        if out.ndim != self.dims + 2 or 0 in out.shape[2:]:
            raise ValueError(
                f"{type(self).__name__} expects [n, channels, {', '.join(AXES[self.dims])}], "
                f"the input is {list(out.shape)}"
            )
        # A window is a product of ranges, so its mean is a mean of means.
        for axis, count in enumerate(self.output_size, start=2):
            out = _means(out, axis, count)
        return out

    def extra_repr(self) -> str:
        """See `Module.extra_repr`."""
        return by(self.output_size)


def _means(x: NDArray[Any], axis: int, count: int) -> NDArray[Any]:
    """Average window i, from ⌊i·in/out⌋ to ⌈(i + 1)·in/out⌉, along one dimension (R122)."""
    size = x.shape[axis]
    windows = ((i * size // count, -(-(i + 1) * size // count)) for i in range(count))
    parts = (
        x[(slice(None),) * axis + (slice(low, high),)].mean(axis=axis) for low, high in windows
    )
    return np.stack(list(parts), axis=axis)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows that cover ``[n, channels, length]`` evenly (R122)."""

    dims = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of windows that cover ``[n, channels, height, width]`` evenly (R122).

    Attributes:
        output_size: height and width of the output.
    """

    dims = 2
