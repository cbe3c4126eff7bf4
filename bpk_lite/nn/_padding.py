"""Padding of convolutions and pools (R118), and the arithmetic of windows."""

from __future__ import annotations

from typing import Any, Literal

__all__ = ["Padding", "as_pair", "check_padding", "pads_2d"]

Padding = Literal["Valid", "Same"] | int | tuple[int, int] | tuple[int, int, int, int]
"""``"Valid"``, ``"Same"``, one number for all sides, ``(height, width)``, or ``(top, left, bottom,
right)``, which is the order of Burn's ``Explicit``."""


def as_pair(value: int | tuple[int, int], what: str, least: int = 1) -> tuple[int, int]:
    """Return `value` for height and width.

    Raises:
        ValueError: If it is neither an integer nor two, or below `least`.
    """
    pair: Any = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or any(not isinstance(item, int) or item < least for item in pair):
        raise ValueError(f"{what} is one or two integers from {least}, not {value!r}")
    return int(pair[0]), int(pair[1])


def check_padding(padding: Padding) -> Padding:
    """Return `padding` when it is one.

    Raises:
        ValueError: If it is not, with the forms there are.
    """
    if isinstance(padding, str):
        valid = padding in {"Valid", "Same"}
    else:
        numbers: Any = (padding,) if isinstance(padding, int) else padding
        valid = len(numbers) in {1, 2, 4} and all(isinstance(n, int) and n >= 0 for n in numbers)
    if not valid:
        raise ValueError(
            'padding is "Valid", "Same", an integer, (height, width) or '
            f"(top, left, bottom, right), not {padding!r}"
        )
    return padding


def pads_2d(
    padding: Padding, size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return ``((top, bottom), (left, right))`` for an input of height and width `size` (R118)."""
    if padding == "Valid":
        return (0, 0), (0, 0)
    if padding == "Same":
        high, wide = map(_same, size, kernel, stride)
        return high, wide
    if isinstance(padding, int):
        return (padding, padding), (padding, padding)
    if len(padding) == 2:
        return (padding[0], padding[0]), (padding[1], padding[1])
    top, left, bottom, right = padding
    return (top, bottom), (left, right)


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Pad so that the output has ``⌈size / stride⌉``; dilation is not considered (R118)."""
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + kernel - size)
    return total // 2, total - total // 2
