"""Initial values, with Burn's names and formulas.

Every initializer is a frozen value that fills a shape when it is asked. The fans, the numbers of
inputs and outputs that meet in one element, come from the layer, because a shape does not tell.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

__all__ = [
    "Constant",
    "Initializer",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "Ones",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "Zeros",
]


class Initializer(ABC):
    """What a param holds before anything was loaded or trained."""

    @abstractmethod
    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """Return an array of `shape`; the param casts it to its dtype."""


@dataclass(frozen=True, slots=True)
class Constant(Initializer):
    """The same value everywhere."""

    value: float

    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """See `Initializer.fill`."""
        return np.full(shape, self.value)


def Zeros() -> Constant:  # noqa: N802 - reads as the other initializers do
    """Return the initializer that fills with 0."""
    return Constant(0.0)


def Ones() -> Constant:  # noqa: N802 - reads as the other initializers do
    """Return the initializer that fills with 1."""
    return Constant(1.0)


@dataclass(frozen=True, slots=True)
class Uniform(Initializer):
    """Evenly between `low` and `high`."""

    low: float
    high: float

    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """See `Initializer.fill`."""
        return random.uniform(self.low, self.high, shape)


@dataclass(frozen=True, slots=True)
class Normal(Initializer):
    """A normal distribution."""

    mean: float = 0.0
    std: float = 1.0

    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """See `Initializer.fill`."""
        return random.normal(self.mean, self.std, shape)


@dataclass(frozen=True, slots=True)
class _Scaled(Initializer):
    """A distribution around 0 whose spread depends on the fans."""

    gain: float = 1.0

    def _uniform(self, std: float, shape: tuple[int, ...], random: Generator) -> NDArray[Any]:
        reach = math.sqrt(3.0) * std
        return random.uniform(-reach, reach, shape)


@dataclass(frozen=True, slots=True)
class KaimingUniform(_Scaled):
    """Uniform with std ``gain / √fan``; the default of linear and conv layers, gain 1/√3."""

    fan_out_only: bool = False

    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """See `Initializer.fill`."""
        std = self.gain / math.sqrt(fan_out if self.fan_out_only else fan_in)
        return self._uniform(std, shape, random)


@dataclass(frozen=True, slots=True)
class KaimingNormal(_Scaled):
    """Normal with std ``gain / √fan``."""

    fan_out_only: bool = False

    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """See `Initializer.fill`."""
        std = self.gain / math.sqrt(fan_out if self.fan_out_only else fan_in)
        return random.normal(0.0, std, shape)


@dataclass(frozen=True, slots=True)
class XavierUniform(_Scaled):
    """Uniform with std ``gain · √(2 / (fan_in + fan_out))``."""

    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """See `Initializer.fill`."""
        return self._uniform(self.gain * math.sqrt(2.0 / (fan_in + fan_out)), shape, random)


@dataclass(frozen=True, slots=True)
class XavierNormal(_Scaled):
    """Normal with std ``gain · √(2 / (fan_in + fan_out))``."""

    def fill(
        self, shape: tuple[int, ...], fan_in: int, fan_out: int, random: Generator
    ) -> NDArray[Any]:
        """See `Initializer.fill`."""
        return random.normal(0.0, self.gain * math.sqrt(2.0 / (fan_in + fan_out)), shape)


DEFAULT = KaimingUniform(gain=1.0 / math.sqrt(3.0))
