"""Typed scalars: the single numbers that a pack stores beside its tensors.

Rules C32, C33, and C120 to C122.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np

__all__ = ["Scalar", "ScalarLike"]

Kind = Literal["Int", "UInt", "Float", "Bool"]
ScalarLike: TypeAlias = "Scalar | bool | int | float | np.generic"

_RANGES: dict[str, tuple[int, int]] = {
    "Int": (-(1 << 63), (1 << 63) - 1),
    "UInt": (0, (1 << 64) - 1),
}


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """One number or boolean with the kind under which it is stored.

    ``Int(3)`` and ``UInt(3)`` are different values (C33). Floats compare by their 64 bits, so a NaN
    equals itself and 0.0 differs from -0.0.

    Attributes:
        kind: ``"Int"`` (i64), ``"UInt"`` (u64), ``"Float"`` (binary64) or ``"Bool"``.
        value: a Python ``int``, ``float`` or ``bool``.

    Raises:
        TypeError: the value is not of the kind's type.
        ValueError: the value does not fit the kind, or there is no such kind.
    """

    kind: Kind
    value: int | float | bool

    def __post_init__(self) -> None:
        if self.kind in _RANGES:
            _expect(self, int)
            low, high = _RANGES[self.kind]
            if not low <= self.value <= high:
                raise ValueError(f"{self.value} does not fit a scalar of kind {self.kind}")
        elif self.kind == "Float":
            _expect(self, float)
        elif self.kind == "Bool":
            _expect(self, bool)
        else:
            raise ValueError(f"a scalar is Int, UInt, Float or Bool, not {self.kind!r}")

    @classmethod
    def of(cls, value: ScalarLike) -> Self | Scalar:
        """Return the scalar that stores `value` (C120).

        numpy's signed integers become Int and its unsigned ones UInt. A Python int, which has no
        signedness of its own, becomes UInt, or Int when it is negative.

        Raises:
            TypeError: `value` is no number or boolean.
            ValueError: an integer that does not fit in 64 bits.
        """
        if isinstance(value, Scalar):
            return value
        if isinstance(value, bool | np.bool_):
            return cls("Bool", bool(value))
        if isinstance(value, np.integer):
            return cls("UInt" if isinstance(value, np.unsignedinteger) else "Int", int(value))
        if isinstance(value, int):
            return cls("UInt" if value >= 0 else "Int", int(value))
        if isinstance(value, float | np.floating):
            return cls("Float", float(value))
        raise TypeError(
            f"a scalar is an int, float or bool, not {type(value).__name__}; "
            "text belongs into metadata"
        )

    def as_int(self, bits: int = 64, *, signed: bool = True) -> int:
        """Return the value as an integer of `bits` (C121, C122).

        Raises:
            ValueError: the kind is Float or Bool, or the value does not fit.
        """
        low = -(1 << (bits - 1)) if signed else 0
        high = (1 << (bits - 1 if signed else bits)) - 1
        if self.kind not in _RANGES or not low <= self.value <= high:
            raise ValueError(f"{self} is no {'' if signed else 'unsigned '}integer of {bits} bits")
        return int(self.value)

    def as_float(self, bits: Literal[32, 64] = 64) -> float:
        """Return the value as a binary64 or, rounded to nearest, binary32 number (C121).

        Raises:
            ValueError: the kind is Bool.
        """
        if self.kind == "Bool":
            raise ValueError(f"{self} is no number")
        if bits == 64:
            return float(self.value)
        with np.errstate(over="ignore"):  # beyond binary32 becomes infinite
            # an integer is rounded once: numpy converts int64 and uint64 to float32 directly
            source: Any = np.float64 if self.kind == "Float" else _INTS[self.kind]
            return float(source(self.value).astype(np.float32))

    def as_bool(self) -> bool:
        """Return the value of a Bool.

        Raises:
            ValueError: another kind.
        """
        if self.kind != "Bool":
            raise ValueError(f"{self} is no boolean")
        return bool(self.value)

    def _key(self) -> tuple[str, bytes | int | float]:
        bits = struct.pack("<d", self.value) if self.kind == "Float" else self.value
        return self.kind, bits

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Scalar) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return f"{self.kind}({self.value})"


_INTS: dict[str, type[np.integer[Any]]] = {"Int": np.int64, "UInt": np.uint64}


def _expect(scalar: Scalar, kind: type) -> None:
    if type(scalar.value) is not kind:
        raise TypeError(
            f"a scalar of kind {scalar.kind} holds {kind.__name__}, "
            f"not {type(scalar.value).__name__}"
        )
