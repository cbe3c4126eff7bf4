"""Make MNIST's digits look more like digits that people draw on a page.

MNIST was scanned from pen on paper. What comes from a canvas, although fitted and centred in the
same way, has other slants, sizes and above all stroke widths: the pen is as wide as the page says,
whatever the size of the digit. The network sees such variants while it is trained. One image in
five stays as it is, so that MNIST itself remains its home.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["augment"]

_UNTOUCHED: Final = 0.2
_TURN: Final = math.radians(15)
_SCALE: Final = 0.13  # larger or smaller by up to this, each axis on its own
_SLANT: Final = 0.2
_SHIFT: Final = 1.6 * 2 / 28  # pixels, in the units of a sampling grid that spans -1 … 1
_BEND: Final = 0.055  # how far a point of the elastic field moves, in the same units
_BEND_POINTS: Final = 5
_BLUR: Final = 0.35


def augment(images: Tensor, random: torch.Generator) -> Tensor:
    """Return randomly bent, shifted, thickened or thinned, and blurred copies of the images.

    Args:
        images: float ``[n, 1, 28, 28]`` between 0 and 1, ink is 1.
        random: the source of all randomness.
    """
    drawn = _width(_bend(images, random), random)
    drawn = _blur(drawn, random).clamp(0, 1)
    gamma = torch.exp(_uniform((len(images), 1, 1, 1), 0.4, random))
    drawn = drawn.pow(gamma)
    keep = torch.rand((len(images), 1, 1, 1), generator=random) < _UNTOUCHED
    return torch.where(keep, images, drawn)


def _uniform(shape: tuple[int, ...], reach: float, random: torch.Generator) -> Tensor:
    """Return numbers between ``-reach`` and ``reach``."""
    return (torch.rand(shape, generator=random) * 2 - 1) * reach


def _bend(images: Tensor, random: torch.Generator) -> Tensor:
    """Turn, scale, slant and shift each image, and warp it by a smooth random field."""
    n = len(images)
    angle = _uniform((n,), _TURN, random)
    wide, high = 1 + _uniform((2, n), _SCALE, random)
    slant = _uniform((n,), _SLANT, random)
    shift = _uniform((2, n), _SHIFT, random)
    cos, sin = torch.cos(angle), torch.sin(angle)
    across = torch.stack((wide * cos, wide * (slant * cos - sin), shift[0]), dim=1)
    down = torch.stack((high * sin, high * (slant * sin + cos), shift[1]), dim=1)
    grid = functional.affine_grid(
        torch.stack((across, down), dim=1), list(images.shape), align_corners=False
    )
    field = _uniform((n, 2, _BEND_POINTS, _BEND_POINTS), _BEND, random)
    field = functional.interpolate(field, images.shape[2:], mode="bicubic", align_corners=True)
    return functional.grid_sample(images, grid + field.permute(0, 2, 3, 1), align_corners=False)


def _width(images: Tensor, random: torch.Generator) -> Tensor:
    """Widen or thin the strokes by up to a pixel on each side."""
    amount = _uniform((len(images), 1, 1, 1), 1.0, random)
    wider = functional.max_pool2d(images, 3, stride=1, padding=1)
    thinner = -functional.max_pool2d(-images, 2, stride=1, padding=1)[:, :, :-1, :-1]
    return torch.where(
        amount > 0,
        torch.lerp(images, wider, amount.clamp(min=0)),
        torch.lerp(images, thinner, 0.6 * (-amount).clamp(min=0)),
    )


def _blur(images: Tensor, random: torch.Generator) -> Tensor:
    """Mix each image with its 3x3 binomial blur."""
    line = torch.tensor([0.25, 0.5, 0.25])
    soft = functional.conv2d(images, torch.outer(line, line)[None, None], padding=1)
    amount = torch.rand((len(images), 1, 1, 1), generator=random) * 2 * _BLUR
    return torch.lerp(images, soft, amount)
