"""Padding of convolutions and pools (R118), and the arithmetic of windows, in any dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AXES", "Padding", "Sizes", "as_sizes", "by", "check_padding", "pads"]

Padding = Literal["Valid", "Same"] | int | tuple[int, ...]
"""``"Valid"``, ``"Same"``, one number for all sides, one for each dimension, or all the numbers
before and then all those after: ``(left, right)``, ``(top, left, bottom, right)``, which is the
order of Burn's ``Explicit``."""

Sizes = int | tuple[int, ...]
"""One number for every dimension, or one for each."""

AXES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
_COUNTS = {1: "one integer", 2: "one or two integers", 3: "one or three integers"}
_FORMS = {
    1: "an integer or (left, right)",
    2: "an integer, (height, width) or (top, left, bottom, right)",
    3: "an integer or (depth, height, width)",
}


def as_sizes(value: Sizes, dims: int, what: str, least: int = 1) -> tuple[int, ...]:
    """Return `value` for each of `dims` dimensions.

    Raises:
        ValueError: If it is neither an integer nor one for each, or below `least`.
    """
    sizes: Any = (value,) * dims if isinstance(value, int) else tuple(value)
    if len(sizes) != dims or any(not isinstance(item, int) or item < least for item in sizes):
        raise ValueError(f"{what} is {_COUNTS[dims]} from {least}, not {value!r}")
    return tuple(int(item) for item in sizes)


def check_padding(padding: Padding, dims: int) -> Padding:
    """Return `padding` when it is one for `dims` dimensions.

    Raises:
        ValueError: If it is not, with the forms there are.
    """
    if isinstance(padding, str):
        valid = padding in {"Valid", "Same"}
    else:
        numbers: Any = (padding,) if isinstance(padding, int) else padding
        lengths = {1, dims} if dims == 3 else {1, dims, 2 * dims}
        valid = len(numbers) in lengths and all(isinstance(n, int) and n >= 0 for n in numbers)
    if not valid:
        raise ValueError(f'padding is "Valid", "Same", {_FORMS[dims]}, not {padding!r}')
    return padding


def pads(
    padding: Padding, size: Sequence[int], kernel: Sequence[int], stride: Sequence[int]
) -> list[tuple[int, int]]:
    """Return how much lies before and after, for each dimension of an input of `size` (R118)."""
    dims = len(size)
    if padding == "Valid":
        return [(0, 0)] * dims
    if padding == "Same":
        return [_same(*sizes) for sizes in zip(size, kernel, stride, strict=True)]
    numbers: Any = (padding,) if isinstance(padding, int) else padding
    if len(numbers) == 1:
        numbers = tuple(numbers) * dims
    return list(zip(numbers[:dims], numbers[-dims:], strict=True))


def by(sizes: Sequence[int]) -> str:
    """Write sizes for people: ``3x2``."""
    return "x".join(map(str, sizes))


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Pad so that the output has ``⌈size / stride⌉``; dilation is not considered (R118)."""
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + kernel - size)
    return total // 2, total - total // 2
